//! Trajectories in the shapes that trainers read. Selects trajectories and steps, divides them into training and
//! validation, and hands them to a writer for the format asked for. Streams: nothing is held but one trajectory.

mod llamafactory;
mod messages;
mod openai;
mod options;
mod run;
mod select;
mod sink;
mod verl;
mod whole;

use std::path::PathBuf;

pub use options::{ExportOptions, Format};
pub use run::{ExportReport, export};

use crate::columnar::ColumnarError;
use crate::layout::Split;
use crate::pt::PtError;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("there is no finished iteration of {split} under {path}", path = path.display())]
    Nothing { split: Split, path: PathBuf },
    #[error("{0}")]
    Options(String),
    #[error("{path} is there already; --overwrite replaces it", path = path.display())]
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
