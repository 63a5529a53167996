//! The recording of an episode, which lies beside its screenshots. Like their paths, its index is not trusted.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use proto::trajectory::Trajectory;
use serde_json::Value;

use super::{ViewError, screenshots::Screenshots};

const INDEX: &str = "recording.json";
const FRAMES: &str = "recording.mjpeg";
const CONSOLE: &str = "console.jsonl";
/// The files that can be downloaded.
const FILES: [&str; 4] = [INDEX, FRAMES, CONSOLE, "network.har"];
const MAX_INDEX_BYTES: u64 = 16 << 20;
const MAX_FRAME_BYTES: u64 = 8 << 20;
/// Console messages that are shown.
const MAX_MESSAGES: usize = 5000;

/// The folder of a recording.
pub(super) struct Recording(PathBuf);

// By value, so that it can be passed to `map_err`.
#[allow(clippy::needless_pass_by_value)]
fn missing(reason: impl ToString) -> ViewError {
    ViewError::NoRecording(reason.to_string())
}

fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>, ViewError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(missing)?;
    file.take(max).read_to_end(&mut bytes).map_err(missing)?;
    Ok(bytes)
}

impl Recording {
    /// Finds the recording beside the first screenshot that may be shown.
    pub(super) fn find(trajectory: &Trajectory, screenshots: &Screenshots) -> Option<Self> {
        let step = trajectory.steps.first()?;
        let screenshot = screenshots.find(&step.observation.image_path).ok()?;
        let folder = screenshot.folder()?.to_owned();
        let recording = Self(folder);
        (recording.path(INDEX).is_ok() && recording.path(FRAMES).is_ok()).then_some(recording)
    }

    /// Returns the path of a file of the recording. Links are not followed: they may lead out of the save path.
    fn path(&self, name: &str) -> Result<PathBuf, ViewError> {
        let path = self.0.join(name);
        let metadata = fs::symlink_metadata(&path).map_err(missing)?;
        if metadata.is_file() { Ok(path) } else { Err(missing(format!("{name} is not a file"))) }
    }

    /// Returns the index with the console messages.
    pub(super) fn describe(&self) -> Result<Value, ViewError> {
        let mut index = self.index()?;
        let console =
            self.path(CONSOLE).and_then(|path| read_bounded(&path, MAX_INDEX_BYTES)).unwrap_or_default();
        let lines = console.split(|byte| *byte == b'\n').take(MAX_MESSAGES);
        let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        index["console"] = messages.collect();
        Ok(index)
    }

    fn index(&self) -> Result<Value, ViewError> {
        let bytes = read_bounded(&self.path(INDEX)?, MAX_INDEX_BYTES)?;
        let index: Value = serde_json::from_slice(&bytes).map_err(missing)?;
        if index.is_object() { Ok(index) } else { Err(missing("its index is damaged")) }
    }

    /// Returns a frame as JPEG.
    pub(super) fn frame(&self, number: usize) -> Result<Vec<u8>, ViewError> {
        let index = self.index()?;
        let entry = &index["frames"][number];
        let (Some(offset), Some(length)) = (entry[1].as_u64(), entry[2].as_u64()) else {
            return Err(missing(format!("it has no frame {number}")));
        };
        if length > MAX_FRAME_BYTES {
            return Err(missing(format!("frame {number} is too large")));
        }
        let mut file = File::open(self.path(FRAMES)?).map_err(missing)?;
        file.seek(SeekFrom::Start(offset)).map_err(missing)?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(missing)?;
        if bytes.len() as u64 == length && bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            return Ok(bytes);
        }
        Err(missing(format!("frame {number} is damaged")))
    }

    /// Returns a file of the recording for download.
    pub(super) fn file(&self, name: &str) -> Result<Vec<u8>, ViewError> {
        let known = FILES.into_iter().find(|known| *known == name).ok_or(ViewError::NoSuchAddress)?;
        fs::read(self.path(known)?).map_err(missing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn damaged_recording_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
        write(FRAMES, b"\xff\xd8\xff\xd9no image");
        let frames =
            json!([[0.0, 0, 4], [1.0, 4, 8], [2.0, 0, 1_u64 << 40], [3.0, 9000, 4], [4.0, -1, 4], "x"]);
        write(INDEX, json!({"duration": 5.0, "frames": frames}).to_string().as_bytes());
        write(CONSOLE, b"{\"text\":\"<b>\",\"time\":1}\nnot json\n");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("network.har")).unwrap();
        let recording = Recording(folder.path().to_owned());
        assert_eq!(recording.describe().unwrap()["console"], json!([{"text": "<b>", "time": 1}]));
        assert_eq!(recording.frame(0).unwrap(), b"\xff\xd8\xff\xd9");
        for damaged in 1..7 {
            assert!(matches!(recording.frame(damaged), Err(ViewError::NoRecording(_))), "frame {damaged}");
        }
        assert!(recording.file(CONSOLE).is_ok());
        assert!(recording.file("network.har").is_err(), "a link may lead out of the save path");
        for other in ["step_000.png", "../secret", ""] {
            assert!(matches!(recording.file(other), Err(ViewError::NoSuchAddress)), "{other}");
        }
        write(INDEX, b"[]");
        assert!(recording.describe().is_err());
    }
}
