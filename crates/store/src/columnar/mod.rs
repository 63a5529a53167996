//! Parquet files: tables of plain, optional, list and record columns, written in row groups of bounded size, and the
//! dataset of steps. Other tools read these files, so the schema has a version.

mod dataset;
mod leaf_column;
mod schema;
mod table_writer;

pub use dataset::{DatasetOptions, DatasetReport, DatasetWriter, SCHEMA_VERSION, documented_columns};
pub(crate) use schema::{Column, Kind};
pub(crate) use table_writer::{Cell, TableWriter};

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ColumnarError {
    #[error("cannot write {path}: {source}", path = path.display())]
    Parquet { path: PathBuf, source: parquet::errors::ParquetError },
    #[error("cannot write {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("a row of {path} does not match its columns", path = path.display())]
    Row { path: PathBuf },
}

impl ColumnarError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }
}
