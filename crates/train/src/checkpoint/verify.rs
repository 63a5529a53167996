//! Verifies a checkpoint: its configuration is readable, and its weights are there, complete and not empty.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CheckpointError, safetensors};

/// Weights in one file.
const SINGLE: &[&str] = &["model.safetensors", "adapter_model.safetensors", "pytorch_model.bin", "model.pt"];
/// Lists of files with parts of the weights.
const INDEXES: &[&str] = &["model.safetensors.index.json", "pytorch_model.bin.index.json"];

/// Verifies the checkpoint in a folder and describes it in a few words.
pub fn verify(folder: &Path) -> Result<String, CheckpointError> {
    let config = ["config.json", "adapter_config.json"].map(|name| folder.join(name));
    let Some(config) = config.iter().find(|path| path.is_file()) else {
        return Err(CheckpointError::Missing { path: folder.to_owned(), what: "config.json".to_owned() });
    };
    let settings = read_json(config)?;
    if settings.as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(damaged(config, "it is not an object with settings"));
    }
    let files = weight_files(folder)?;
    let mut bytes = 0;
    for path in &files {
        check_weights(path)?;
        bytes += std::fs::metadata(path).map_err(CheckpointError::io("read", path))?.len();
    }
    Ok(format!("{} of weights in {}", size(bytes), files_text(files.len())))
}

fn files_text(count: usize) -> String {
    if count == 1 { "one file".to_owned() } else { format!("{count} files") }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    if let Some(index) = INDEXES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        return indexed_files(&index);
    }
    if let Some(path) = SINGLE.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        return Ok(vec![path]);
    }
    let what = format!("weights; expected {} or an index of several files", SINGLE.join(", "));
    Err(CheckpointError::Missing { path: folder.to_owned(), what })
}

fn indexed_files(index: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let content = read_json(index)?;
    let names: Option<BTreeSet<&str>> = content
        .get("weight_map")
        .and_then(Value::as_object)
        .map(|map| map.values().filter_map(Value::as_str).collect());
    let names = names.filter(|names| !names.is_empty());
    let Some(names) = names else { return Err(damaged(index, "it lists no files")) };
    let folder = index.parent().unwrap_or(Path::new("."));
    let is_name = |name: &str| !name.contains('/') && name != "..";
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(damaged(index, &format!("{name:?} is not a file name")));
    }
    let absent = names.iter().find(|name| !folder.join(name).is_file());
    match absent {
        Some(name) => Err(CheckpointError::Missing { path: folder.to_owned(), what: (*name).to_owned() }),
        None => Ok(names.into_iter().map(|name| folder.join(name)).collect()),
    }
}

fn check_weights(path: &Path) -> Result<(), CheckpointError> {
    let is_safetensors = path.extension().is_some_and(|extension| extension == "safetensors");
    let checked = if is_safetensors { safetensors::check(path).map(drop) } else { check_torch_file(path) };
    checked.map_err(|reason| damaged(path, &reason))
}

/// PyTorch's files are ZIP archives, whose directory is at the end, so that a truncated one has none.
fn check_torch_file(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let archive = zip::ZipArchive::new(std::io::BufReader::new(file)).map_err(|error| error.to_string())?;
    let has_content = archive.file_names().any(|name| name.is_ok_and(|name| name.ends_with("data.pkl")));
    if has_content { Ok(()) } else { Err("it has no data.pkl".to_owned()) }
}

fn read_json(path: &Path) -> Result<Value, CheckpointError> {
    let bytes = std::fs::read(path).map_err(CheckpointError::io("read", path))?;
    serde_json::from_slice(&bytes).map_err(|error| damaged(path, &format!("it is not JSON: {error}")))
}

fn damaged(path: &Path, reason: &str) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_tensors(path: &Path) {
        let header = r#"{"a":{"data_offsets":[0,4]}}"#;
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat();
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn complete_checkpoint_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("config.json"), r#"{"model_type":"x"}"#).unwrap();
        assert!(verify(folder.path()).unwrap_err().to_string().contains("no weights"));
        write_tensors(&path("model.safetensors"));
        assert!(verify(folder.path()).unwrap().contains("one file"));
    }

    #[test]
    fn half_written_checkpoints_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let reason = || verify(folder.path()).unwrap_err().to_string();
        assert!(reason().contains("has no config.json"), "{}", reason());
        std::fs::write(path("config.json"), "{").unwrap();
        assert!(reason().contains("config.json is damaged"), "{}", reason());
        std::fs::write(path("config.json"), r#"{"model_type":"x"}"#).unwrap();
        std::fs::write(
            path("model.safetensors.index.json"),
            r#"{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}"#,
        )
        .unwrap();
        write_tensors(&path("1.safetensors"));
        assert!(reason().contains("has no 2.safetensors"), "{}", reason());
        std::fs::write(path("2.safetensors"), b"").unwrap();
        assert!(reason().contains("2.safetensors is damaged: it has only 0 bytes"), "{}", reason());
        std::fs::remove_file(path("model.safetensors.index.json")).unwrap();
        std::fs::write(path("pytorch_model.bin"), b"PK").unwrap();
        assert!(reason().contains("pytorch_model.bin is damaged"), "{}", reason());
    }
}
