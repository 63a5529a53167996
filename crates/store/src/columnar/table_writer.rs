//! Writes rows to a Parquet file that gets its final name when it is complete.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::ColumnarError;
use super::leaf_column::LeafColumn;
use super::schema::{self, Column};
use crate::durable::{AtomicFile, Existing};

/// Approximate size of a row group.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// One field of a row. It must match the kind of its column.
#[derive(Debug)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    OptionalText(Option<&'a str>),
    Bytes(Option<&'a [u8]>),
    Int(i64),
    OptionalInt(Option<i64>),
    OptionalDouble(Option<f64>),
    Bool(bool),
    OptionalBool(Option<bool>),
    Ints(Option<&'a [i64]>),
    Doubles(Option<&'a [f64]>),
    Texts(Vec<&'a str>),
    /// One list of values for each field of the records.
    Records(Vec<Vec<&'a str>>),
}

pub(crate) struct TableWriter {
    path: PathBuf,
    writer: SerializedFileWriter<AtomicFile>,
    leaves: Vec<LeafColumn>,
    buffered_bytes: usize,
    rows: u64,
}

impl TableWriter {
    /// Creates a table. The columns in `plain` have long values that never repeat, so that a dictionary does not help.
    pub(crate) fn create(
        path: &Path,
        name: &str,
        columns: &[Column],
        plain: &[&str],
        metadata: &[(&str, String)],
    ) -> Result<Self, ColumnarError> {
        let parquet_error = |source| ColumnarError::Parquet { path: path.to_path_buf(), source };
        let schema = parse_message_type(&schema::message_schema(name, columns)).map_err(parquet_error)?;
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(parquet_error)?))
            .set_created_by(format!("webgym {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(pairs.collect()));
        for column in plain {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(*column), false);
        }
        let file = AtomicFile::create(path).map_err(|source| ColumnarError::io(path, source))?;
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
            .map_err(parquet_error)?;
        let leaves = columns.iter().flat_map(LeafColumn::of).collect();
        Ok(Self { path: path.to_path_buf(), writer, leaves, buffered_bytes: 0, rows: 0 })
    }

    /// Adds a row. A group column takes one cell for each of its nested columns.
    pub(crate) fn push(&mut self, row: &[Cell<'_>]) -> Result<(), ColumnarError> {
        let mut leaves = self.leaves.iter_mut();
        let mut matches = true;
        for cell in row {
            self.buffered_bytes += cell_bytes(cell);
            let width = if let Cell::Records(fields) = cell { fields.len() } else { 1 };
            for field in 0..width {
                let Some(leaf) = leaves.next() else {
                    matches = false;
                    break;
                };
                matches &= push_cell(leaf, cell, field);
            }
        }
        if !matches || leaves.next().is_some() {
            return Err(ColumnarError::Row { path: self.path.clone() });
        }
        self.rows += 1;
        if self.buffered_bytes >= ROW_GROUP_BYTES { self.write_row_group() } else { Ok(()) }
    }

    fn write_row_group(&mut self) -> Result<(), ColumnarError> {
        self.buffered_bytes = 0;
        let Self { path, writer, leaves, .. } = self;
        let mut write = || -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            let mut leaves = leaves.iter_mut();
            while let Some(column) = group.next_column()? {
                let leaf = leaves
                    .next()
                    .ok_or_else(|| ParquetError::General("a column has no values".to_owned()))?;
                leaf.write(column)?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(|source| ColumnarError::Parquet { path: path.clone(), source })
    }

    pub(crate) fn finish(mut self, existing: Existing) -> Result<u64, ColumnarError> {
        if self.buffered_bytes > 0 {
            self.write_row_group()?;
        }
        let Self { path, writer, rows, .. } = self;
        let file =
            writer.into_inner().map_err(|source| ColumnarError::Parquet { path: path.clone(), source })?;
        file.commit(existing).map_err(|source| ColumnarError::io(&path, source))?;
        Ok(rows)
    }
}

/// Appends a cell (or one field of a record cell) to a leaf column. Returns whether the types match.
fn push_cell(leaf: &mut LeafColumn, cell: &Cell<'_>, field: usize) -> bool {
    match cell {
        Cell::Text(text) => leaf.push_bytes(Some(text.as_bytes())),
        Cell::OptionalText(text) => leaf.push_bytes(text.map(str::as_bytes)),
        Cell::Bytes(bytes) => leaf.push_bytes(*bytes),
        Cell::Int(value) => leaf.push_int(Some(*value)),
        Cell::OptionalInt(value) => leaf.push_int(*value),
        Cell::OptionalDouble(value) => leaf.push_double(*value),
        Cell::Bool(value) => leaf.push_bool(Some(*value)),
        Cell::OptionalBool(value) => leaf.push_bool(*value),
        Cell::Ints(list) => leaf.push_ints(*list),
        Cell::Doubles(list) => leaf.push_doubles(*list),
        Cell::Texts(texts) => leaf.push_texts(texts.iter().copied()),
        Cell::Records(fields) => leaf.push_texts(fields[field].iter().copied()),
    }
}

/// Approximate size of a cell in memory.
fn cell_bytes(cell: &Cell<'_>) -> usize {
    16 + match cell {
        Cell::Text(text) => text.len(),
        Cell::OptionalText(text) => text.map_or(0, str::len),
        Cell::Bytes(bytes) => bytes.map_or(0, <[_]>::len),
        Cell::Ints(list) => list.map_or(0, |list| list.len() * 8),
        Cell::Doubles(list) => list.map_or(0, |list| list.len() * 8),
        Cell::Texts(texts) => texts.iter().map(|text| text.len() + 16).sum(),
        Cell::Records(fields) => fields.iter().flatten().map(|text| text.len() + 16).sum(),
        Cell::Int(_)
        | Cell::OptionalInt(_)
        | Cell::OptionalDouble(_)
        | Cell::Bool(_)
        | Cell::OptionalBool(_) => 0,
    }
}
