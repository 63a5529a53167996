//! Screenshot files of trajectories. The path in a trajectory is not trusted: after resolving links and dots, only files in
//! the save path, its image folder or a folder that the user named are opened, and only images are sent.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use proto::ImageFormat;
use store::SavePath;

use super::ViewError;

/// Larger files are cut off; no screenshot is that large.
const MAX_BYTES: u64 = 64 << 20;

/// Finds the screenshots of a save path.
#[derive(Clone, Debug)]
pub(super) struct Screenshots {
    save_path: SavePath,
    /// Folders outside the save path that the user allowed.
    image_folders: Vec<PathBuf>,
}

/// A screenshot file that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Screenshot {
    path: PathBuf,
    /// The path in the trajectory, for error messages.
    recorded: String,
}

impl Screenshots {
    pub(super) const fn new(save_path: SavePath, image_folders: Vec<PathBuf>) -> Self {
        Self { save_path, image_folders }
    }

    /// Finds the file of a recorded screenshot path, if it exists and may be shown.
    pub(super) fn find(&self, recorded: &str) -> Result<Screenshot, ViewError> {
        if recorded.is_empty() {
            return Err(ViewError::NoScreenshot("none was recorded".to_owned()));
        }
        // In a copied save path the recorded path may still point to the original; prefer the copy's own file.
        let own = recorded.rsplit_once("/images/").map(|(_, rest)| self.save_path.images().join(rest));
        let candidates = own.into_iter().chain([self.save_path.resolve_image(recorded)]);
        let found: Vec<PathBuf> = candidates.filter_map(|path| path.canonicalize().ok()).collect();
        if found.is_empty() {
            return Err(ViewError::NoScreenshot(recorded.to_owned()));
        }
        let outside = || ViewError::ScreenshotOutside(recorded.to_owned());
        let path = found.into_iter().find(|path| self.may_show(path)).ok_or_else(outside)?;
        if !path.is_file() {
            return Err(ViewError::NoScreenshot(recorded.to_owned()));
        }
        Ok(Screenshot { path, recorded: recorded.to_owned() })
    }

    /// Checks whether a path may be shown. The path must be canonical.
    fn may_show(&self, path: &Path) -> bool {
        let allowed = [self.save_path.root().to_path_buf(), self.save_path.images()];
        let is_below = |folder: &Path| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder));
        allowed.iter().chain(&self.image_folders).any(|folder| is_below(folder))
    }
}

impl Screenshot {
    /// Returns the folder of the screenshot, which has passed the same checks.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.path.parent()
    }

    /// Returns the file's content and its content type.
    pub(super) fn read(&self) -> Result<(Vec<u8>, &'static str), ViewError> {
        let missing = |error: std::io::Error| ViewError::NoScreenshot(format!("{}: {error}", self.recorded));
        let mut bytes = Vec::new();
        File::open(&self.path).map_err(missing)?.take(MAX_BYTES).read_to_end(&mut bytes).map_err(missing)?;
        let kind = content_type(&bytes).ok_or_else(|| ViewError::NotAnImage(self.recorded.clone()))?;
        Ok((bytes, kind))
    }

    /// Returns a string that changes when the file changes; used as `ETag`.
    pub(super) fn version(&self) -> String {
        let metadata = self.path.metadata().ok();
        let changed = metadata.as_ref().and_then(|data| data.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let length = metadata.map_or(0, |data| data.len());
        format!("{:x}-{length:x}", changed.map_or(0, |time| time.as_nanos()))
    }
}

/// Detects the image type from the content; the file name is not trusted.
fn content_type(bytes: &[u8]) -> Option<&'static str> {
    let is_gif = bytes.starts_with(b"GIF8");
    ImageFormat::of(bytes).map(ImageFormat::mime).or_else(|| is_gif.then_some("image/gif"))
}
