//! The values of one physical column of a row group, with the levels that tell nulls and lists apart.

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedColumnWriter;

use super::schema::{Column, Kind};

#[derive(Debug)]
enum Values {
    Bytes(Vec<ByteArray>),
    Int(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
}

#[derive(Debug)]
pub(super) struct Leaf {
    values: Values,
    /// How much of the path to a value is there; equal to `full` where there is a value.
    definition: Vec<i16>,
    repetition: Vec<i16>,
    full: i16,
    is_list: bool,
}

impl Leaf {
    /// The leaves of a column, in the order of the schema.
    pub(super) fn of(column: &Column) -> Vec<Self> {
        let leaf = |values, full, is_list| Self {
            values,
            definition: Vec::new(),
            repetition: Vec::new(),
            full,
            is_list,
        };
        let bytes = || Values::Bytes(Vec::new());
        match column.kind {
            Kind::Text => vec![leaf(bytes(), 0, false)],
            Kind::OptionalText | Kind::OptionalJson | Kind::OptionalBytes => vec![leaf(bytes(), 1, false)],
            Kind::Int => vec![leaf(Values::Int(Vec::new()), 0, false)],
            Kind::Bool => vec![leaf(Values::Bool(Vec::new()), 0, false)],
            Kind::OptionalBool => vec![leaf(Values::Bool(Vec::new()), 1, false)],
            Kind::OptionalIntList => vec![leaf(Values::Int(Vec::new()), 2, true)],
            Kind::OptionalDoubleList => vec![leaf(Values::Double(Vec::new()), 2, true)],
            Kind::TextList => vec![leaf(bytes(), 1, true)],
            Kind::Records(fields) => fields.iter().map(|_| leaf(bytes(), 1, true)).collect(),
            Kind::Group(columns) => columns.iter().flat_map(Self::of).collect(),
        }
    }

    /// A value in a row, or null.
    pub(super) fn bytes(&mut self, value: Option<&[u8]>) -> bool {
        let Values::Bytes(values) = &mut self.values else { return false };
        values.extend(value.map(|value| ByteArray::from(value.to_vec())));
        self.single(value.is_some())
    }

    pub(super) fn int(&mut self, value: i64) -> bool {
        let Values::Int(values) = &mut self.values else { return false };
        values.push(value);
        self.single(true)
    }

    pub(super) fn bool(&mut self, value: Option<bool>) -> bool {
        let Values::Bool(values) = &mut self.values else { return false };
        values.extend(value);
        self.single(value.is_some())
    }

    pub(super) fn ints(&mut self, list: Option<&[i64]>) -> bool {
        let Values::Int(values) = &mut self.values else { return false };
        values.extend(list.unwrap_or_default());
        self.list(list.map(<[_]>::len))
    }

    pub(super) fn doubles(&mut self, list: Option<&[f64]>) -> bool {
        let Values::Double(values) = &mut self.values else { return false };
        values.extend(list.unwrap_or_default());
        self.list(list.map(<[_]>::len))
    }

    pub(super) fn texts<'a>(&mut self, list: impl ExactSizeIterator<Item = &'a str>) -> bool {
        let Values::Bytes(values) = &mut self.values else { return false };
        let length = list.len();
        values.extend(list.map(|text| ByteArray::from(text.as_bytes().to_vec())));
        self.list(Some(length))
    }

    fn single(&mut self, is_there: bool) -> bool {
        if self.full > 0 {
            self.definition.push(i16::from(is_there));
        }
        !self.is_list && (is_there || self.full > 0)
    }

    fn list(&mut self, length: Option<usize>) -> bool {
        match length {
            None | Some(0) => {
                // An empty list is one level short of a value, no list is two.
                self.definition.push(if length.is_some() { self.full - 1 } else { self.full - 2 });
                self.repetition.push(0);
            }
            Some(length) => {
                self.definition.extend(std::iter::repeat_n(self.full, length));
                self.repetition.extend((0..length).map(|position| i16::from(position > 0)));
            }
        }
        self.is_list && (length.is_some() || self.full > 1)
    }

    /// Writes the column and empties it.
    pub(super) fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<()> {
        let definition = (self.full > 0).then_some(self.definition.as_slice());
        let repetition = self.is_list.then_some(self.repetition.as_slice());
        match (writer.untyped(), &self.values) {
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Bytes(values)) => {
                writer.write_batch(values, definition, repetition)?;
            }
            (ColumnWriter::Int64ColumnWriter(writer), Values::Int(values)) => {
                writer.write_batch(values, definition, repetition)?;
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Double(values)) => {
                writer.write_batch(values, definition, repetition)?;
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Bool(values)) => {
                writer.write_batch(values, definition, repetition)?;
            }
            _ => return Err(ParquetError::General("a column is not of the type of its schema".to_owned())),
        }
        writer.close()?;
        match &mut self.values {
            Values::Bytes(values) => values.clear(),
            Values::Int(values) => values.clear(),
            Values::Double(values) => values.clear(),
            Values::Bool(values) => values.clear(),
        }
        self.definition.clear();
        self.repetition.clear();
        Ok(())
    }
}
