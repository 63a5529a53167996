//! The layout of the original's scripts: a loop continues a run that they began, and leaves the training data where they have
//! it. Nothing of theirs is removed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use store::SavePath;

use crate::checkpoint::{Checkpoints, PublishedBy, locate, replace_link, verify};

/// The folder with the data of the last training.
const DATA: &str = "llamafactory_data";
/// What LLaMA-Factory's data always has.
const DATASET_INFO: &str = "dataset_info.json";

/// Returns a checkpoint that the original's trainer wrote, if its script was interrupted before it had copied it to
/// `model.pt`: there is no complete model, or an older one.
pub(crate) fn uncopied_checkpoint(save_path: &SavePath, checkpoints: &Checkpoints) -> Option<PathBuf> {
    let trained = latest_trained(&save_path.checkpoints())?;
    let is_copied = match checkpoints.current() {
        None => false,
        Some((folder, PublishedBy::Others)) if verify(&folder).is_err() => false,
        Some((folder, _)) => changed(&folder) >= changed(&trained),
    };
    (!is_copied).then_some(trained)
}

/// Returns the latest complete checkpoint of the folders `model_<time>`, whose names sort by time.
fn latest_trained(checkpoints: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(checkpoints).into_iter().flatten().flatten();
    let is_output = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("model_"))
    };
    let mut outputs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_output).collect();
    outputs.sort();
    // Only the numbered folder has the state of the optimizer.
    let checkpoint =
        |output: &PathBuf| locate(output, Some("checkpoint-*")).unwrap_or_else(|_| output.clone());
    outputs.iter().rev().map(checkpoint).find(|path| verify(path).is_ok())
}

/// Returns when a file or folder was last modified.
pub(crate) fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// Links LLaMA-Factory's data files under the names that the original's scripts use. Does nothing for other formats.
pub(crate) fn add_names(data: &Path) -> io::Result<()> {
    if !data.join(DATASET_INFO).is_file() {
        return Ok(());
    }
    let names: &[(&str, &str)] = if data.join("webgym_val.json").is_file() {
        &[("finetune_train.json", "webgym_train.json"), ("finetune_val.json", "webgym_val.json")]
    } else {
        &[("finetune.json", "webgym_train.json")]
    };
    names.iter().try_for_each(|(name, target)| replace_link(&data.join(name), Path::new(target)))
}

/// Makes LLaMA-Factory's data reachable as `llamafactory_data`. A folder of the original with that name is kept beside the
/// loop's data.
pub(crate) fn link_data(save_path: &SavePath, data: &Path) -> io::Result<()> {
    if !data.join(DATASET_INFO).is_file() {
        return Ok(());
    }
    let link = save_path.root().join(DATA);
    if std::fs::symlink_metadata(&link).is_ok_and(|metadata| metadata.is_dir()) {
        std::fs::rename(&link, free_name(data.with_file_name("before_loop")))?;
    }
    replace_link(&link, data.strip_prefix(save_path.root()).unwrap_or(data))
}

fn free_name(path: PathBuf) -> PathBuf {
    let numbered = |number: u32| path.with_extension(number.to_string());
    let candidates = std::iter::once(path.clone()).chain((2..).map(numbered));
    candidates.into_iter().find(|candidate| !candidate.exists()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        _folder: tempfile::TempDir,
        save_path: SavePath,
        checkpoints: Checkpoints,
    }

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let save_path = SavePath::new(folder.path());
            let checkpoints = Checkpoints::new(save_path.clone(), "model.pt");
            Self { _folder: folder, save_path, checkpoints }
        }

        fn checkpoint(&self, path: &str, is_complete: bool, age_secs: u64) -> PathBuf {
            let folder = self.save_path.root().join(path);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("config.json"), r#"{"model_type":"x"}"#).unwrap();
            if is_complete {
                let header = r#"{"a":{"data_offsets":[0,4]}}"#;
                let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat();
                std::fs::write(folder.join("model.safetensors"), bytes).unwrap();
            }
            let time = SystemTime::now() - std::time::Duration::from_secs(age_secs);
            std::fs::File::open(&folder).unwrap().set_modified(time).unwrap();
            folder
        }

        fn uncopied(&self) -> Option<PathBuf> {
            uncopied_checkpoint(&self.save_path, &self.checkpoints)
        }
    }

    #[test]
    fn checkpoint_that_was_not_copied_is_found() {
        let files = Files::new();
        assert_eq!(files.uncopied(), None);
        files.checkpoint("checkpoints/model_20250115_143022/checkpoint-9", true, 90);
        let latest = files.checkpoint("checkpoints/model_20250116_080000/checkpoint-12", true, 60);
        files.checkpoint("checkpoints/model_20250117_080000/checkpoint-20", false, 0);
        assert_eq!(files.uncopied(), Some(latest.clone()), "the last training was interrupted");
        files.checkpoint("model.pt", false, 30);
        assert_eq!(files.uncopied(), Some(latest), "the copy was interrupted");
        files.checkpoint("model.pt", true, 30);
        assert_eq!(files.uncopied(), None);
        let newer = files.checkpoint("checkpoints/model_20250118_080000", true, 10);
        assert_eq!(files.uncopied(), Some(newer), "without a numbered folder, the output is the checkpoint");
    }

    #[test]
    fn data_is_linked_and_a_folder_of_the_original_kept() {
        let files = Files::new();
        let root = files.save_path.root();
        let data = |number: u32| {
            let data = root.join(format!("loop/data/iteration_{number}"));
            std::fs::create_dir_all(&data).unwrap();
            std::fs::write(data.join("webgym_train.json"), number.to_string()).unwrap();
            data
        };
        link_data(&files.save_path, &data(0)).unwrap();
        assert!(!root.join(DATA).exists(), "the data is not LLaMA-Factory's");
        std::fs::create_dir(root.join(DATA)).unwrap();
        std::fs::write(root.join(DATA).join("finetune.json"), "old").unwrap();
        for number in [1, 2] {
            std::fs::write(data(number).join(DATASET_INFO), "{}").unwrap();
            add_names(&data(number)).unwrap();
            link_data(&files.save_path, &data(number)).unwrap();
            let read = std::fs::read_to_string(root.join(DATA).join("finetune.json")).unwrap();
            assert_eq!(read, number.to_string());
        }
        assert_eq!(std::fs::read_to_string(root.join("loop/data/before_loop/finetune.json")).unwrap(), "old");
        std::fs::write(data(3).join(DATASET_INFO), "{}").unwrap();
        std::fs::write(data(3).join("webgym_val.json"), "val").unwrap();
        add_names(&data(3)).unwrap();
        assert_eq!(std::fs::read_to_string(data(3).join("finetune_val.json")).unwrap(), "val");
        assert!(data(3).join("finetune_train.json").exists() && !data(3).join("finetune.json").exists());
    }
}
