//! Parquet: tables of plain, optional, list and record columns, written in row groups of bounded size; and the dataset
//! of steps that is made of them. Other people's tools read these files, so the schema has a version.

mod dataset;
mod leaf;
mod schema;
mod table;

pub use dataset::{DatasetOptions, DatasetReport, DatasetWriter, SCHEMA_VERSION, documented_columns};
pub(crate) use schema::{Column, Kind};
pub(crate) use table::{Cell, TableWriter};

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ColumnarError {
    #[error("cannot write {path}: {source}", path = path.display())]
    Parquet { path: PathBuf, source: parquet::errors::ParquetError },
    #[error("cannot write {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("a row of {path} does not fit its columns", path = path.display())]
    Row { path: PathBuf },
}

impl ColumnarError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}
