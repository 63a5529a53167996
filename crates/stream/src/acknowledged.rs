//! The file beside the journal that says how far the consumer has acknowledged. It is durable before an acknowledgment is
//! answered, so that a resumed run continues there.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use store::durable::{AtomicFile, Existing};

use crate::cursor::Cursor;

#[derive(Debug)]
pub(crate) struct AcknowledgedFile {
    path: PathBuf,
    run: u32,
}

#[derive(Serialize, Deserialize)]
struct Content {
    cursor: String,
}

impl AcknowledgedFile {
    pub(crate) const fn new(path: PathBuf, run: u32) -> Self {
        Self { path, run }
    }

    /// Returns the number of acknowledged items. A file that belongs to another run or is damaged counts as none, so that
    /// items are delivered again rather than left out.
    pub(crate) fn read(&self) -> io::Result<u64> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            other => other?,
        };
        let content = serde_json::from_slice::<Content>(&bytes).ok();
        match content.and_then(|content| content.cursor.parse::<Cursor>().ok()) {
            Some(cursor) if cursor.run == self.run => Ok(cursor.position),
            _ => {
                let path = self.path.display();
                tracing::warn!("{path} is not of this run; the stream starts with its first item");
                Ok(0)
            }
        }
    }

    /// Makes the number of acknowledged items durable.
    pub(crate) fn write(&self, position: u64) -> io::Result<()> {
        let content = Content { cursor: Cursor { run: self.run, position }.to_string() };
        let mut file = AtomicFile::create(&self.path)?;
        file.write_all(&serde_json::to_vec(&content)?)?;
        file.commit(Existing::Replace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgments_of_this_run_only_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let file = AcknowledgedFile::new(path.clone(), 7);
        assert_eq!(file.read().unwrap(), 0);
        file.write(3).unwrap();
        file.write(5).unwrap();
        assert_eq!(file.read().unwrap(), 5);
        assert_eq!(AcknowledgedFile::new(path.clone(), 8).read().unwrap(), 0);
        std::fs::write(&path, b"{\"cursor\": \"x\"}").unwrap();
        assert_eq!(file.read().unwrap(), 0);
    }
}
