//! The files of a session: those that its client uploads for file inputs, and those that pages download, if the session
//! keeps downloads. They lie in a folder of the browser's profile and are removed with the session. Their size is bounded
//! for the session and for all sessions of a node together.

mod budget;
mod download;
mod name;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

pub use self::budget::{FileBudget, NodeSpace};
pub(crate) use self::download::DownloadChange;
use self::name::{MAX_NAME_BYTES, check_name};
use crate::error::BrowserError;

/// The most files of a session.
const MAX_FILES: usize = 200;

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
}

impl State {
    fn position(&self, name: &str) -> Option<usize> {
        self.files.iter().position(|file| file.info.name == name)
    }

    fn find(&self, name: &str) -> Result<usize, BrowserError> {
        let not_found = || BrowserError::FileNotFound(name.chars().take(MAX_NAME_BYTES).collect());
        self.position(name).ok_or_else(not_found)
    }
}

pub(crate) struct SessionFiles {
    folder: PathBuf,
    /// Whether downloads are kept. Otherwise the browser refuses them.
    keeps_downloads: bool,
    budget: Arc<FileBudget>,
    /// The events of downloads take this lock, so it is never held during disk access.
    state: Mutex<State>,
    /// The number of uploads so far. Locked while a file is written or deleted.
    uploads: Mutex<u64>,
}

impl SessionFiles {
    pub(crate) fn new(folder: PathBuf, keeps_downloads: bool, budget: Arc<FileBudget>) -> Self {
        Self { folder, keeps_downloads, budget, state: Mutex::default(), uploads: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uploads(&self) -> MutexGuard<'_, u64> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Stores an uploaded file; replaces an upload of the same name. Blocks.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), BrowserError> {
        check_name(name)?;
        let mut uploads = self.uploads();
        let size = content.len() as u64;
        let reserved = self.reserve_upload(name, size)?;
        *uploads += 1;
        // A folder for each upload, because websites see the file's own name.
        let folder = self.folder.join(format!("upload-{uploads}"));
        if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(name), content)) {
            self.budget.give_back(&mut self.state().used, reserved);
            remove(&folder.join(name));
            return Err(disk_error(name, &error));
        }
        let info = FileInfo { name: name.to_owned(), size, origin: FileOrigin::Upload };
        let replaced = self.add_upload(StoredFile { info, stored_as: format!("upload-{uploads}/{name}") });
        if let Some(file) = replaced {
            remove(&self.folder.join(file.stored_as));
        }
        Ok(())
    }

    /// Reserves what an upload needs in addition to the one that it replaces.
    fn reserve_upload(&self, name: &str, size: u64) -> Result<u64, BrowserError> {
        let mut state = self.state();
        let existing = state.position(name).map(|index| &state.files[index].info);
        let additional = match existing {
            Some(FileInfo { origin: FileOrigin::Upload, size: replaced, .. }) => {
                size.saturating_sub(*replaced)
            }
            Some(_) => {
                return Err(BrowserError::BadArgument(format!(
                    "the session already has a download named {name:?}"
                )));
            }
            None if state.files.len() >= MAX_FILES => {
                return Err(BrowserError::BadArgument(format!(
                    "the session has {MAX_FILES} files, the most it can have"
                )));
            }
            None => size,
        };
        let reserved = self.budget.reserve(&mut state.used, additional);
        reserved.map_err(|reason| BrowserError::TooLarge(format!("{name}: {reason}")))?;
        Ok(additional)
    }

    /// Adds an upload whose space is reserved. Returns the one that it replaces.
    fn add_upload(&self, file: StoredFile) -> Option<StoredFile> {
        let mut state = self.state();
        let replaced = state.position(&file.info.name).map(|index| state.files.remove(index));
        if let Some(replaced) = &replaced {
            let unused = replaced.info.size.saturating_sub(file.info.size);
            self.budget.give_back(&mut state.used, unused);
        }
        state.files.push(file);
        replaced
    }

    /// Reads a complete file. Blocks.
    pub(crate) fn read(&self, name: &str) -> Result<Bytes, BrowserError> {
        let path = self.path(name)?;
        fs::read(path).map(Bytes::from).map_err(|error| disk_error(name, &error))
    }

    /// Deletes a file. Blocks.
    pub(crate) fn delete(&self, name: &str) -> Result<(), BrowserError> {
        let _uploads = self.uploads();
        let mut state = self.state();
        let index = state.find(name)?;
        let file = state.files.remove(index);
        self.budget.give_back(&mut state.used, file.info.size);
        drop(state);
        remove(&self.folder.join(file.stored_as));
        Ok(())
    }

    /// The path of a complete file.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, BrowserError> {
        let state = self.state();
        let file = &state.files[state.find(name)?];
        match file.info.origin {
            FileOrigin::Upload | FileOrigin::Download { state: DownloadState::Complete, .. } => {
                Ok(self.folder.join(&file.stored_as))
            }
            FileOrigin::Download { state, .. } => {
                Err(BrowserError::BadArgument(format!("the download {name:?} is not complete: {state:?}")))
            }
        }
    }
}

impl Drop for SessionFiles {
    fn drop(&mut self) {
        let mut state = self.state();
        let used = state.used;
        self.budget.give_back(&mut state.used, used);
        drop(state);
        let has_folder = self.keeps_downloads || *self.uploads() > 0;
        if has_folder
            && let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "cannot remove the files of a session; they are removed with its browser");
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "cannot remove a file of a session");
    }
}

fn disk_error(name: &str, error: &io::Error) -> BrowserError {
    BrowserError::Internal(format!("the file {name:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded_and_given_back() {
        let budget = Arc::new(FileBudget::new(10, 15));
        let folder = std::env::temp_dir().join(format!("webgym-files-{}", std::process::id()));
        let session = |name: &str| SessionFiles::new(folder.join(name), false, Arc::clone(&budget));
        let (first, second) = (session("first"), session("second"));
        first.write("a", b"12345678").unwrap();
        assert!(first.write("b", b"123").unwrap_err().to_string().contains("10 bytes"));
        assert!(first.write("a", b"12345678901").unwrap_err().to_string().contains("10 bytes"));
        assert_eq!(first.read("a").unwrap(), "12345678", "a refused upload replaces nothing");
        first.write("a", b"1234").unwrap();
        assert_eq!((budget.used(), first.list().len()), (4, 1), "an upload of the same name is replaced");
        assert_eq!(first.read("a").unwrap(), "1234");
        second.write("c", b"123456789").unwrap();
        assert!(first.write("d", b"123").unwrap_err().to_string().contains("15 bytes"));
        drop(second);
        assert_eq!(budget.used(), 4);
        first.delete("a").unwrap();
        assert!(matches!(first.read("a"), Err(BrowserError::FileNotFound(_))));
        drop(first);
        assert_eq!(budget.used(), 0);
        assert!(!folder.join("first").exists() && !folder.join("second").exists());
        fs::remove_dir(folder).unwrap();
    }
}
