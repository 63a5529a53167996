//! Exports trajectories to the formats that trainers read: selects trajectories and steps, divides them into training
//! and validation data, and writes the requested format. Only one trajectory is in memory at a time.

mod advantage;
mod conversation;
mod jsonl;
mod llamafactory;
mod openai;
mod options;
mod parquet;
mod pipeline;
mod pt;
mod select;
mod sink;
mod train_config;
mod verl;

use std::path::PathBuf;

pub use advantage::Advantage;
pub use options::{ExportOptions, Format, Recency};
pub use pipeline::{ExportReport, export};
pub use train_config::TrainConfig;

use crate::columnar::ColumnarError;
use crate::layout::Split;
use crate::pt::PtError;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{path} has no finished iteration of {split}", path = path.display())]
    NoIterations { split: Split, path: PathBuf },
    #[error("{0}")]
    Options(String),
    #[error("{path} already exists; add --overwrite to replace it", path = path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Read(#[from] PtError),
    #[error(transparent)]
    Columnar(#[from] ColumnarError),
}

impl ExportError {
    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            std::io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::Io { path, source },
        }
    }
}
