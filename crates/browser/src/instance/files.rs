//! The files of an instance: uploads, downloads, and choosing files in a page.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cdp::protocol as p;
use proto::command::Target;
use serde_json::json;

use super::Instance;
use crate::{
    error::BrowserError,
    files::{FileInfo, SessionFiles},
    page::page_state::FileChooser,
};

/// The longest wait for the file chooser that a click opens.
const CHOOSER_TIMEOUT: Duration = Duration::from_secs(5);

impl Instance {
    pub fn list_files(&self) -> Vec<FileInfo> {
        self.context.files().list()
    }

    pub async fn write_file(&self, name: &str, content: Bytes) -> Result<(), BrowserError> {
        let name = name.to_owned();
        self.with_disk(move |files| files.write(&name, &content)).await
    }

    pub async fn read_file(&self, name: &str) -> Result<Bytes, BrowserError> {
        let name = name.to_owned();
        self.with_disk(move |files| files.read(&name)).await
    }

    pub async fn delete_file(&self, name: &str) -> Result<(), BrowserError> {
        let name = name.to_owned();
        self.with_disk(move |files| files.delete(&name)).await
    }

    /// Runs disk access on a thread for blocking work.
    async fn with_disk<T: Send + 'static>(
        &self,
        access: impl FnOnce(&SessionFiles) -> Result<T, BrowserError> + Send + 'static,
    ) -> Result<T, BrowserError> {
        let files = Arc::clone(self.context.files());
        let done = tokio::task::spawn_blocking(move || access(&files)).await;
        done.unwrap_or_else(|error| {
            Err(BrowserError::Internal(format!("the access to a file failed: {error}")))
        })
    }

    /// Chooses files in the file chooser that a click on the target opens, or in the one that is open.
    pub(super) async fn set_files(
        &mut self,
        names: &[String],
        target: Option<&Target>,
    ) -> Result<(), BrowserError> {
        let paths =
            names.iter().map(|name| self.context.files().path(name)).collect::<Result<Vec<_>, _>>()?;
        if let Some(target) = target {
            self.page.tracker().state().file_chooser = None;
            match target {
                Target::Id(id) => self.click_id(id).await?,
                Target::Point(point) => self.click_point(*point).await?,
            }
            let opened =
                self.page.tracker().wait_until(|state| state.file_chooser.is_some() || state.ended.is_some());
            let _ = tokio::time::timeout(CHOOSER_TIMEOUT, opened).await;
        }
        let chooser = self.page.tracker().state().file_chooser.take();
        let refused = |reason: &str| BrowserError::BadArgument(format!("set_files: {reason}"));
        let Some(FileChooser { mode, backend_node_id }) = chooser else {
            return Err(refused(match target {
                Some(_) => "a click there opens no file chooser",
                None => "no file chooser is open; name a file input by id, or by x and y",
            }));
        };
        let Some(node) = backend_node_id else {
            return Err(refused(
                "the chooser was opened by a script and has no file input, which is not supported",
            ));
        };
        if mode != "selectMultiple" && paths.len() > 1 {
            return Err(refused("this file input takes a single file"));
        }
        let params = json!({"files": paths, "backendNodeId": node});
        self.page.session().run(p::DOM_SET_FILE_INPUT_FILES, &params).await?;
        Ok(())
    }
}
