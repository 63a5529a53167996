//! The files of a session: those that its client uploads for file inputs, and those that pages download, if the session
//! keeps downloads. They lie in a folder of the browser's profile and are removed with the session. Their size is bounded
//! for the session and for all sessions of a node together.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use cdp::{Session, protocol as p};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::BrowserError;

/// The space that files may take, and what all sessions of a node take now.
#[derive(Debug)]
pub struct FileBudget {
    /// The most bytes of one session.
    pub session_bytes: u64,
    /// The most bytes of all sessions together.
    pub node_bytes: u64,
    used: AtomicU64,
}

impl FileBudget {
    pub fn new(session_bytes: u64, node_bytes: u64) -> Self {
        Self { session_bytes, node_bytes, used: AtomicU64::new(0) }
    }

    /// The bytes that the files of all sessions take.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Default for FileBudget {
    fn default() -> Self {
        Self::new(64 << 20, 1 << 30)
    }
}

/// The most files of a session.
const MAX_FILES: usize = 200;
const MAX_NAME_BYTES: usize = 200;

/// One file, as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    pub name: String,
    pub size: u64,
    #[serde(flatten)]
    pub origin: FileOrigin,
}

/// Where a file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileOrigin {
    Upload,
    Download { url: String, state: DownloadState },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DownloadState {
    InProgress,
    Complete,
    /// The download failed, or the page cancelled it.
    Failed,
    /// There was no space left for it.
    TooLarge,
}

struct StoredFile {
    info: FileInfo,
    /// The name on disk; of a download, also its id in the protocol.
    stored_as: String,
}

#[derive(Default)]
struct State {
    files: Vec<StoredFile>,
    /// The bytes that this session has reserved.
    used: u64,
    uploads: u64,
}

pub(crate) struct SessionFiles {
    folder: PathBuf,
    /// Whether downloads are kept. Otherwise the browser refuses them.
    keeps_downloads: bool,
    budget: Arc<FileBudget>,
    state: Mutex<State>,
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
    pub(crate) fn new(folder: PathBuf, keeps_downloads: bool, budget: Arc<FileBudget>) -> Self {
        Self { folder, keeps_downloads, budget, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parameters of `Browser.setDownloadBehavior` for a context.
    pub(crate) fn download_behavior(&self, context: &str) -> serde_json::Value {
        if !self.keeps_downloads {
            return json!({"behavior": "deny", "browserContextId": context});
        }
        json!({"behavior": "allowAndName", "downloadPath": self.folder, "browserContextId": context, "eventsEnabled": true})
    }

    pub(crate) const fn keeps_downloads(&self) -> bool {
        self.keeps_downloads
    }

    /// Creates the folder. Needed before the first upload or download.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)
    }

    pub(crate) fn list(&self) -> Vec<FileInfo> {
        self.state().files.iter().map(|file| file.info.clone()).collect()
    }

    /// Stores an uploaded file; replaces an upload of the same name.
    pub(crate) fn write(&self, name: &str, content: &Bytes) -> Result<(), BrowserError> {
        check_name(name)?;
        self.create_folder().map_err(|error| disk_error(name, &error))?;
        let size = content.len() as u64;
        let mut state = self.state();
        let existing = state.files.iter().position(|file| file.info.name == name);
        if existing.is_some_and(|index| state.files[index].info.origin != FileOrigin::Upload) {
            return Err(BrowserError::BadArgument(format!(
                "the session already has a download named {name:?}"
            )));
        }
        if existing.is_none() && state.files.len() >= MAX_FILES {
            return Err(BrowserError::BadArgument(format!(
                "the session has {MAX_FILES} files, the most it can have"
            )));
        }
        if let Some(index) = existing {
            self.remove(&mut state, index);
        }
        self.reserve(&mut state, size)
            .map_err(|reason| BrowserError::TooLarge(format!("{name}: {reason}")))?;
        state.uploads += 1;
        // A folder for each upload, because websites see the file's own name.
        let stored_as = format!("upload-{}/{name}", state.uploads);
        let path = self.folder.join(&stored_as);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
        if let Err(error) = written {
            self.give_back(&mut state, size);
            return Err(disk_error(name, &error));
        }
        let info = FileInfo { name: name.to_owned(), size, origin: FileOrigin::Upload };
        state.files.push(StoredFile { info, stored_as });
        Ok(())
    }

    pub(crate) fn read(&self, name: &str) -> Result<Bytes, BrowserError> {
        let path = self.path(name)?;
        fs::read(path).map(Bytes::from).map_err(|error| disk_error(name, &error))
    }

    pub(crate) fn delete(&self, name: &str) -> Result<(), BrowserError> {
        let mut state = self.state();
        let index = find(&state, name)?;
        self.remove(&mut state, index);
        Ok(())
    }

    /// The path of a complete file.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, BrowserError> {
        let state = self.state();
        let file = &state.files[find(&state, name)?];
        match file.info.origin {
            FileOrigin::Upload | FileOrigin::Download { state: DownloadState::Complete, .. } => {
                Ok(self.folder.join(&file.stored_as))
            }
            FileOrigin::Download { state, .. } => {
                Err(BrowserError::BadArgument(format!("the download {name:?} is not complete: {state:?}")))
            }
        }
    }

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
            let name = unique_name(&state, &begun.suggested_filename);
            let url: String = begun.url.chars().take(2000).collect();
            let origin = FileOrigin::Download { url, state: DownloadState::InProgress };
            let info = FileInfo { name, size: 0, origin };
            state.files.push(StoredFile { info, stored_as: begun.guid.clone() });
        }
        is_bounded
    }

    /// Records how far a download is. Returns whether it may go on.
    fn record_progress(&self, progress: &DownloadProgress) -> bool {
        let mut state = self.state();
        let Some(index) = state.files.iter().position(|file| file.stored_as == progress.guid) else {
            return true;
        };
        let FileOrigin::Download { state: current, .. } = &state.files[index].info.origin else {
            return true;
        };
        if *current != DownloadState::InProgress {
            return true;
        }
        let known = state.files[index].info.size;
        // The whole size, if the server has told it, is reserved at once.
        let size = (progress.received_bytes.max(progress.total_bytes).max(0.0) as u64).max(known);
        let next = match progress.state.as_str() {
            "completed" => DownloadState::Complete,
            "canceled" => DownloadState::Failed,
            _ => DownloadState::InProgress,
        };
        let fits = next == DownloadState::Failed || self.reserve(&mut state, size - known).is_ok();
        let (size, next) = match (fits, next) {
            (false, _) => (0, DownloadState::TooLarge),
            (_, DownloadState::Failed) => (0, next),
            _ => (size, next),
        };
        if size == 0 {
            self.give_back(&mut state, known);
        }
        let info = &mut state.files[index].info;
        info.size = size;
        if let FileOrigin::Download { state, .. } = &mut info.origin {
            *state = next;
        }
        fits
    }

    fn reserve(&self, state: &mut State, bytes: u64) -> Result<(), String> {
        let budget = &self.budget;
        if state.used + bytes > budget.session_bytes {
            return Err(format!("the files of a session may have {} bytes together", budget.session_bytes));
        }
        let reserved = budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used + bytes).filter(|used| *used <= budget.node_bytes)
        });
        if reserved.is_err() {
            return Err(format!(
                "the files of all sessions of this node may have {} bytes together",
                budget.node_bytes
            ));
        }
        state.used += bytes;
        Ok(())
    }

    fn give_back(&self, state: &mut State, bytes: u64) {
        state.used -= bytes;
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn remove(&self, state: &mut State, index: usize) {
        let file = state.files.remove(index);
        self.give_back(state, file.info.size);
        remove_file(&self.folder.join(file.stored_as));
    }
}

impl Drop for SessionFiles {
    fn drop(&mut self) {
        let mut state = self.state();
        let used = state.used;
        self.give_back(&mut state, used);
        let has_folder = !state.files.is_empty() || self.keeps_downloads;
        drop(state);
        if has_folder
            && let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "cannot remove the files of a session; they are removed with its browser");
        }
    }
}

/// What happened to a download.
pub(crate) enum DownloadChange {
    Begun(String),
    Ended(String),
}

fn cancel_download(session: &Session, context: &str, guid: &str) {
    let params = json!({"guid": guid, "browserContextId": context});
    session.connection().root().send_no_reply(p::BROWSER_CANCEL_DOWNLOAD, &params);
}

fn find(state: &State, name: &str) -> Result<usize, BrowserError> {
    let index = state.files.iter().position(|file| file.info.name == name);
    index.ok_or_else(|| {
        let quoted: String = name.chars().take(MAX_NAME_BYTES).collect();
        BrowserError::FileNotFound(quoted)
    })
}

fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "cannot remove a file of a session");
    }
}

fn disk_error(name: &str, error: &io::Error) -> BrowserError {
    BrowserError::Internal(format!("the file {name:?}: {error}"))
}

/// Checks the name of an upload, which becomes the name of a file on disk.
fn check_name(name: &str) -> Result<(), BrowserError> {
    let is_valid = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control);
    if is_valid {
        return Ok(());
    }
    let quoted: String = name.chars().take(100).collect();
    Err(BrowserError::BadArgument(format!(
        "{quoted:?} is not a file name: use 1 to {MAX_NAME_BYTES} bytes without slashes and control characters, not starting with a dot"
    )))
}

/// Makes the name that a site suggests safe and different from the others.
fn unique_name(state: &State, suggested: &str) -> String {
    let safe: String = suggested
        .chars()
        .map(|c| if c.is_control() || c == '/' || c == '\\' { '_' } else { c })
        .take(100)
        .collect();
    let safe = safe.trim_start_matches('.').to_owned();
    let safe = if safe.is_empty() { "download".to_owned() } else { safe };
    let is_taken = |name: &str| state.files.iter().any(|file| file.info.name == name);
    if !is_taken(&safe) {
        return safe;
    }
    let (stem, extension) =
        safe.rsplit_once('.').map_or((safe.as_str(), String::new()), |(stem, end)| (stem, format!(".{end}")));
    let mut names = (1..).map(|number| format!("{stem} ({number}){extension}"));
    names.find(|name| !is_taken(name)).unwrap_or(safe.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(session_bytes: u64, node: &Arc<FileBudget>) -> SessionFiles {
        let _ = session_bytes;
        let folder =
            std::env::temp_dir().join(format!("webgym-files-{}-{:p}", std::process::id(), Arc::as_ptr(node)));
        SessionFiles::new(folder, true, Arc::clone(node))
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\nb", &"x".repeat(201)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["report.pdf", "Übersicht 2026.csv", "a..b"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn sizes_are_bounded_and_given_back() {
        let budget = Arc::new(FileBudget::new(10, 15));
        let first = files(10, &budget);
        first.write("a", &Bytes::from_static(b"12345678")).unwrap();
        assert!(first.write("b", &Bytes::from_static(b"123")).unwrap_err().to_string().contains("10 bytes"));
        first.write("a", &Bytes::from_static(b"1234")).unwrap();
        assert_eq!(budget.used(), 4, "an upload of the same name is replaced");
        assert_eq!(first.read("a").unwrap(), Bytes::from_static(b"1234"));
        let second_folder = first.folder.join("second");
        let second = SessionFiles::new(second_folder, false, Arc::clone(&budget));
        second.write("c", &Bytes::from_static(b"123456789")).unwrap();
        assert!(first.write("d", &Bytes::from_static(b"123")).unwrap_err().to_string().contains("15 bytes"));
        drop(second);
        assert_eq!(budget.used(), 4);
        first.delete("a").unwrap();
        assert!(matches!(first.read("a"), Err(BrowserError::FileNotFound(_))));
        let folder = first.folder.clone();
        drop(first);
        assert_eq!(budget.used(), 0);
        assert!(!folder.exists());
    }

    #[test]
    fn download_beyond_the_budget_is_cancelled() {
        let budget = Arc::new(FileBudget::new(100, 1000));
        let files = files(100, &budget);
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
