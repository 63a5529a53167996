//! Writes rows to a Parquet file that appears under its name when it is complete.

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
use super::leaf::Leaf;
use super::schema::{self, Column, Kind};
use crate::durable::{AtomicFile, Existing};

/// Rows are written out when about so many bytes of them wait.
const GROUP_BYTES: usize = 64 << 20;

/// One field of a row; must be of the kind of its column.
#[derive(Debug)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    OptionalText(Option<&'a str>),
    Bytes(Option<&'a [u8]>),
    Int(i64),
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
    leaves: Vec<Leaf>,
    waiting_bytes: usize,
    rows: u64,
}

impl TableWriter {
    /// `bulky` columns hold long texts that never repeat: no dictionary is tried for them.
    pub(crate) fn create(
        path: &Path,
        name: &str,
        columns: &[Column],
        bulky: &[&str],
        metadata: &[(&str, String)],
    ) -> Result<Self, ColumnarError> {
        let failed = |source| ColumnarError::Parquet { path: path.to_path_buf(), source };
        let message = parse_message_type(&schema::message(name, columns)).map_err(failed)?;
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(failed)?))
            .set_created_by(format!("webgym {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(pairs.collect()));
        for column in bulky {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(*column), false);
        }
        let file = AtomicFile::create(path).map_err(|source| ColumnarError::io(path, source))?;
        let writer = SerializedFileWriter::new(file, Arc::new(message), Arc::new(properties.build()))
            .map_err(failed)?;
        let leaves = columns.iter().flat_map(Leaf::of).collect();
        Ok(Self { path: path.to_path_buf(), writer, leaves, waiting_bytes: 0, rows: 0 })
    }

    /// Adds a row. Cells of the columns of a group stand one by one in its place.
    pub(crate) fn push(&mut self, row: &[Cell<'_>]) -> Result<(), ColumnarError> {
        let mut leaves = self.leaves.iter_mut();
        let mut fits = true;
        for cell in row {
            self.waiting_bytes += size(cell);
            let width = if let Cell::Records(fields) = cell { fields.len() } else { 1 };
            for field in 0..width {
                let Some(leaf) = leaves.next() else {
                    fits = false;
                    break;
                };
                fits &= put(leaf, cell, field);
            }
        }
        if !fits || leaves.next().is_some() {
            return Err(ColumnarError::Row { path: self.path.clone() });
        }
        self.rows += 1;
        if self.waiting_bytes >= GROUP_BYTES { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), ColumnarError> {
        self.waiting_bytes = 0;
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
        if self.waiting_bytes > 0 {
            self.write_group()?;
        }
        let Self { path, writer, rows, .. } = self;
        let file =
            writer.into_inner().map_err(|source| ColumnarError::Parquet { path: path.clone(), source })?;
        file.commit(existing).map_err(|source| ColumnarError::io(&path, source))?;
        Ok(rows)
    }
}

fn put(leaf: &mut Leaf, cell: &Cell<'_>, field: usize) -> bool {
    match cell {
        Cell::Text(text) => leaf.bytes(Some(text.as_bytes())),
        Cell::OptionalText(text) => leaf.bytes(text.map(str::as_bytes)),
        Cell::Bytes(bytes) => leaf.bytes(*bytes),
        Cell::Int(value) => leaf.int(*value),
        Cell::Bool(value) => leaf.bool(Some(*value)),
        Cell::OptionalBool(value) => leaf.bool(*value),
        Cell::Ints(list) => leaf.ints(*list),
        Cell::Doubles(list) => leaf.doubles(*list),
        Cell::Texts(texts) => leaf.texts(texts.iter().copied()),
        Cell::Records(fields) => leaf.texts(fields[field].iter().copied()),
    }
}

fn size(cell: &Cell<'_>) -> usize {
    16 + match cell {
        Cell::Text(text) => text.len(),
        Cell::OptionalText(text) => text.map_or(0, str::len),
        Cell::Bytes(bytes) => bytes.map_or(0, <[_]>::len),
        Cell::Ints(list) => list.map_or(0, |list| list.len() * 8),
        Cell::Doubles(list) => list.map_or(0, |list| list.len() * 8),
        Cell::Texts(texts) => texts.iter().map(|text| text.len() + 16).sum(),
        Cell::Records(fields) => fields.iter().flatten().map(|text| text.len() + 16).sum(),
        Cell::Int(_) | Cell::Bool(_) | Cell::OptionalBool(_) => 0,
    }
}

impl Kind {
    /// The name by which the documentation calls it.
    pub(crate) const fn documented(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::OptionalText => "string or null",
            Self::OptionalJson => "JSON text or null",
            Self::Int => "int64",
            Self::Bool => "bool",
            Self::OptionalBool => "bool or null",
            Self::OptionalBytes => "binary or null",
            Self::OptionalIntList => "list of int64, or null",
            Self::OptionalDoubleList => "list of double, or null",
            Self::TextList => "list of string",
            Self::Records(_) => "list of records",
            Self::Group(_) => "record",
        }
    }
}
