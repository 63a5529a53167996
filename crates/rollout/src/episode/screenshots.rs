//! The folder of an episode's screenshots, such as `images/task_0007_1f3a…/step_000.png` (`.jpg` for JPEG). Writes on blocking
//! threads and makes the screenshots durable before the trajectory that refers to them.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use proto::ImageFormat;
use store::journal::Scan;
use tokio::sync::Semaphore;

/// The screenshots of one attempt at a task.
#[derive(Clone, Debug)]
pub struct ScreenshotStore {
    folder: PathBuf,
}

impl ScreenshotStore {
    /// Chooses a folder that no other attempt uses. [`ScreenshotStore::create`] creates it, after the journal has its name so
    /// that a resumed run can remove it.
    pub fn new(images: &Path, index: usize) -> Self {
        let tag = uuid::Uuid::new_v4().simple().to_string();
        Self { folder: images.join(format!("task_{index:04}_{}", &tag[..8])) }
    }

    pub async fn create(&self) -> io::Result<()> {
        let folder = self.folder.clone();
        blocking(move || fs::create_dir_all(folder)).await
    }

    /// Returns the name of the folder without its parents.
    pub fn name(&self) -> Option<&str> {
        self.folder.file_name()?.to_str()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub async fn save(&self, step: usize, screenshot: Bytes) -> io::Result<PathBuf> {
        let extension = ImageFormat::of(&screenshot).unwrap_or_default().extension();
        let path = self.path(step, extension);
        let target = path.clone();
        blocking(move || fs::write(target, &screenshot)).await?;
        Ok(path)
    }

    /// Saves a screenshot that equals the one at `earlier`: as a second name of the same file, or as a copy on file systems
    /// without hard links.
    pub async fn save_again(&self, step: usize, earlier: &Path) -> io::Result<PathBuf> {
        let path =
            self.path(step, earlier.extension().and_then(|extension| extension.to_str()).unwrap_or("png"));
        let (source, target) = (earlier.to_owned(), path.clone());
        blocking(move || fs::hard_link(&source, &target).or_else(|_| fs::copy(&source, &target).map(drop)))
            .await?;
        Ok(path)
    }

    fn path(&self, step: usize, extension: &str) -> PathBuf {
        self.folder.join(format!("step_{step:03}.{extension}"))
    }

    /// Syncs all screenshots and the folder to disk.
    pub async fn sync(&self) -> io::Result<()> {
        let folder = self.folder.clone();
        blocking(move || {
            for entry in fs::read_dir(&folder)? {
                File::open(entry?.path())?.sync_data()?;
            }
            File::open(&folder)?.sync_all()
        })
        .await
    }

    /// Deletes the screenshots of an attempt that will be retried.
    pub async fn discard(self) {
        let _ = blocking(move || fs::remove_dir_all(self.folder)).await;
    }
}

/// Deletes the screenshots of attempts that a crashed run did not finish, and returns how many folders were deleted.
pub fn discard_abandoned(images: &Path, scan: &Scan) -> usize {
    let is_deleted = |name: &&str| fs::remove_dir_all(images.join(name)).is_ok();
    scan.abandoned_images().into_iter().filter(is_deleted).count()
}

/// Limits concurrent disk operations: more do not make the disk faster, and each blocked thread costs memory.
static DISK_PERMITS: Semaphore = Semaphore::const_new(32);

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let _permit = DISK_PERMITS.acquire().await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
