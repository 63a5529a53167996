//! Downloads that a session keeps: begun, bounded and ended as the browser reports them.

use cdp::{Session, protocol as p};
use serde::Deserialize;
use serde_json::json;

use super::{DownloadState, FileInfo, FileOrigin, MAX_FILES, SessionFiles, StoredFile, name::unique_name};

const MAX_URL_CHARS: usize = 2000;

/// What happened to a download.
pub(crate) enum DownloadChange {
    Begun(String),
    Ended(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadWillBegin {
    guid: String,
    url: String,
    suggested_filename: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadProgress {
    guid: String,
    total_bytes: f64,
    received_bytes: f64,
    state: String,
}

impl SessionFiles {
    /// Handles the events of a page's downloads. Returns the id of a download that has begun or ended.
    pub(crate) fn handle_event(
        &self,
        session: &Session,
        context: &str,
        method: &str,
        params: &[u8],
    ) -> Option<DownloadChange> {
        if method == p::PAGE_DOWNLOAD_WILL_BEGIN {
            let begun: DownloadWillBegin = cdp::parse_params(params).ok()?;
            if !self.begin_download(&begun) {
                cancel_download(session, context, &begun.guid);
            }
            return Some(DownloadChange::Begun(begun.guid));
        }
        let progress: DownloadProgress = cdp::parse_params(params).ok()?;
        if !self.record_progress(&progress) {
            cancel_download(session, context, &progress.guid);
        }
        (progress.state != "inProgress").then_some(DownloadChange::Ended(progress.guid))
    }

    /// Returns whether the download may go on.
    fn begin_download(&self, begun: &DownloadWillBegin) -> bool {
        let mut state = self.state();
        let is_bounded = state.files.len() < MAX_FILES;
        if is_bounded {
            let name = unique_name(&begun.suggested_filename, |name| state.position(name).is_some());
            let url: String = begun.url.chars().take(MAX_URL_CHARS).collect();
            let origin = FileOrigin::Download { url, state: DownloadState::InProgress };
            let info = FileInfo { name, size: 0, origin };
            state.files.push(StoredFile { info, stored_as: begun.guid.clone() });
        }
        is_bounded
    }

    /// Records how far a download is. Returns whether it may go on.
    fn record_progress(&self, progress: &DownloadProgress) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        let Some(file) = state.files.iter_mut().find(|file| file.stored_as == progress.guid) else {
            return true;
        };
        let FileOrigin::Download { state: download @ DownloadState::InProgress, .. } = &mut file.info.origin
        else {
            return true;
        };
        let known = file.info.size;
        // The whole size, if the server has told it, is reserved at once.
        let size = (progress.received_bytes.max(progress.total_bytes).max(0.0) as u64).max(known);
        let next = match progress.state.as_str() {
            "completed" => DownloadState::Complete,
            "canceled" => DownloadState::Failed,
            _ => DownloadState::InProgress,
        };
        let fits =
            next == DownloadState::Failed || self.budget.reserve(&mut state.used, size - known).is_ok();
        (file.info.size, *download) = match (fits, next) {
            (false, _) => (0, DownloadState::TooLarge),
            (_, DownloadState::Failed) => (0, next),
            _ => (size, next),
        };
        if file.info.size == 0 {
            self.budget.give_back(&mut state.used, known);
        }
        fits
    }
}

fn cancel_download(session: &Session, context: &str, guid: &str) {
    let params = json!({"guid": guid, "browserContextId": context});
    session.connection().root().send_no_reply(p::BROWSER_CANCEL_DOWNLOAD, &params);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::files::FileBudget;

    #[test]
    fn download_beyond_the_budget_is_cancelled() {
        let budget = Arc::new(FileBudget::new(100, 1000));
        let folder = std::env::temp_dir().join(format!("webgym-downloads-{}", std::process::id()));
        let files = SessionFiles::new(folder, true, Arc::clone(&budget));
        let begin = |guid: &str| DownloadWillBegin {
            guid: guid.to_owned(),
            url: "http://a.test/x".to_owned(),
            suggested_filename: "../x.bin".to_owned(),
        };
        let progress = |guid: &str, received: f64, state: &str| DownloadProgress {
            guid: guid.to_owned(),
            total_bytes: 0.0,
            received_bytes: received,
            state: state.to_owned(),
        };
        assert!(files.begin_download(&begin("one")) && files.begin_download(&begin("two")));
        assert!(files.record_progress(&progress("one", 60.0, "inProgress")));
        assert!(!files.record_progress(&progress("two", 60.0, "inProgress")));
        assert!(files.record_progress(&progress("one", 90.0, "completed")));
        assert_eq!(budget.used(), 90);
        let names: Vec<String> = files.list().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["_x.bin", "_x (1).bin"]);
        assert!(files.path("_x (1).bin").unwrap_err().to_string().contains("TooLarge"));
    }
}
