//! Screenshots on disk, for judges that look at them. Without a judge that needs files, nothing is written.

use std::path::{Path, PathBuf};

use client::farm::Screenshot;
use rollout::episode::screenshots::ScreenshotStore;

use crate::error::EnvError;

/// The folder of an episode's screenshots, if they are kept.
pub(crate) struct ScreenshotFiles {
    store: Option<ScreenshotStore>,
    /// Removes the folder with the episode.
    is_temporary: bool,
}

impl ScreenshotFiles {
    pub(crate) const fn none() -> Self {
        Self { store: None, is_temporary: false }
    }

    /// Keeps screenshots below `folder` until the episode is dropped.
    pub(crate) async fn temporary(folder: &Path, index: usize) -> Result<Self, EnvError> {
        let store = ScreenshotStore::new(folder, index);
        store.create().await.map_err(|error| EnvError::Disk(error.to_string()))?;
        Ok(Self { store: Some(store), is_temporary: true })
    }

    /// Keeps screenshots in the folder of a recorded episode.
    pub(crate) fn recorded(store: ScreenshotStore) -> Self {
        Self { store: Some(store), is_temporary: false }
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.store.as_ref().map(ScreenshotStore::folder)
    }

    /// Saves the screenshot of a step and returns its path; an empty one if screenshots are not kept.
    pub(crate) async fn save(
        &self,
        step: usize,
        screenshot: Option<&Screenshot>,
    ) -> Result<PathBuf, EnvError> {
        let (Some(store), Some(screenshot)) = (&self.store, screenshot) else { return Ok(PathBuf::new()) };
        store.save(step, screenshot.data.clone()).await.map_err(|error| EnvError::Disk(error.to_string()))
    }
}

impl Drop for ScreenshotFiles {
    fn drop(&mut self) {
        let Some(store) = self.store.take().filter(|_| self.is_temporary) else { return };
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(store.discard());
        }
    }
}
