//! The record of a run's configuration: one YAML document per run in `hyperparameters.yaml`.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use super::Resolved;

#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", file.display())]
pub struct RecordError {
    file: PathBuf,
    source: std::io::Error,
}

/// Appends the configuration to `<save_path>/hyperparameters.yaml` as one document, whole or not at all.
pub fn append_hyperparameters(
    resolved: &Resolved,
    save_path: &Path,
    now: jiff::Timestamp,
    run: &[(&str, serde_json::Value)],
) -> Result<PathBuf, RecordError> {
    let file = save_path.join("hyperparameters.yaml");
    let mut text = format!("---\nrun_timestamp: \"{now}\"\n");
    for (key, value) in run {
        text.extend([key, ": ", &value.to_string(), "\n"]);
    }
    text.push_str("config:\n");
    for line in resolved.to_yaml().lines() {
        text.extend(["  ", line, "\n"]);
    }
    let written = std::fs::create_dir_all(save_path).and_then(|()| {
        let file = OpenOptions::new().create(true).append(true).open(&file)?;
        append_whole(&file, text.as_bytes())
    });
    match written {
        Ok(()) => Ok(file),
        Err(source) => Err(RecordError { file, source }),
    }
}

/// Appends the text and removes what was written of it when the disk is full. Half a line would corrupt the next document.
fn append_whole(mut file: &File, text: &[u8]) -> std::io::Result<()> {
    // Other ranks append too. Where the file system has no locks, documents are still whole unless the disk is full.
    let _ = file.lock();
    let before = file.metadata()?.len();
    let written = file.write_all(text).and_then(|()| file.sync_data());
    if written.is_err() {
        file.set_len(before)?;
    }
    written
}
