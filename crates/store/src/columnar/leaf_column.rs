//! The buffered values of one leaf column of a row group, with the levels that encode nulls and lists.

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
pub(super) struct LeafColumn {
    values: Values,
    /// Definition levels; `max_definition` where there is a value, lower for nulls and empty lists.
    definition: Vec<i16>,
    repetition: Vec<i16>,
    max_definition: i16,
    is_list: bool,
}

impl LeafColumn {
    /// The leaf columns of a column, in the order of the schema.
    pub(super) fn of(column: &Column) -> Vec<Self> {
        let leaf = |values, max_definition, is_list| Self {
            values,
            definition: Vec::new(),
            repetition: Vec::new(),
            max_definition,
            is_list,
        };
        let bytes = || Values::Bytes(Vec::new());
        match column.kind {
            Kind::Text => vec![leaf(bytes(), 0, false)],
            Kind::OptionalText | Kind::OptionalJson | Kind::OptionalBytes => vec![leaf(bytes(), 1, false)],
            Kind::Int => vec![leaf(Values::Int(Vec::new()), 0, false)],
            Kind::OptionalInt => vec![leaf(Values::Int(Vec::new()), 1, false)],
            Kind::OptionalDouble => vec![leaf(Values::Double(Vec::new()), 1, false)],
            Kind::Bool => vec![leaf(Values::Bool(Vec::new()), 0, false)],
            Kind::OptionalBool => vec![leaf(Values::Bool(Vec::new()), 1, false)],
            Kind::OptionalIntList => vec![leaf(Values::Int(Vec::new()), 2, true)],
            Kind::OptionalDoubleList => vec![leaf(Values::Double(Vec::new()), 2, true)],
            Kind::TextList => vec![leaf(bytes(), 1, true)],
            Kind::Records(fields) => fields.iter().map(|_| leaf(bytes(), 1, true)).collect(),
            Kind::Group(columns) => columns.iter().flat_map(Self::of).collect(),
        }
    }

    /// Appends a value or null. This and the other `push_` methods return whether the value matches the column.
    pub(super) fn push_bytes(&mut self, value: Option<&[u8]>) -> bool {
        let Values::Bytes(values) = &mut self.values else { return false };
        values.extend(value.map(|value| ByteArray::from(value.to_vec())));
        self.push_single_level(value.is_some())
    }

    pub(super) fn push_int(&mut self, value: Option<i64>) -> bool {
        let Values::Int(values) = &mut self.values else { return false };
        values.extend(value);
        self.push_single_level(value.is_some())
    }

    pub(super) fn push_double(&mut self, value: Option<f64>) -> bool {
        let Values::Double(values) = &mut self.values else { return false };
        values.extend(value);
        self.push_single_level(value.is_some())
    }

    pub(super) fn push_bool(&mut self, value: Option<bool>) -> bool {
        let Values::Bool(values) = &mut self.values else { return false };
        values.extend(value);
        self.push_single_level(value.is_some())
    }

    pub(super) fn push_ints(&mut self, list: Option<&[i64]>) -> bool {
        let Values::Int(values) = &mut self.values else { return false };
        values.extend(list.unwrap_or_default());
        self.push_list_levels(list.map(<[_]>::len))
    }

    pub(super) fn push_doubles(&mut self, list: Option<&[f64]>) -> bool {
        let Values::Double(values) = &mut self.values else { return false };
        values.extend(list.unwrap_or_default());
        self.push_list_levels(list.map(<[_]>::len))
    }

    pub(super) fn push_texts<'a>(&mut self, list: impl ExactSizeIterator<Item = &'a str>) -> bool {
        let Values::Bytes(values) = &mut self.values else { return false };
        let length = list.len();
        values.extend(list.map(|text| ByteArray::from(text.as_bytes().to_vec())));
        self.push_list_levels(Some(length))
    }

    fn push_single_level(&mut self, is_present: bool) -> bool {
        if self.max_definition > 0 {
            self.definition.push(i16::from(is_present));
        }
        !self.is_list && (is_present || self.max_definition > 0)
    }

    fn push_list_levels(&mut self, length: Option<usize>) -> bool {
        match length {
            None | Some(0) => {
                // An empty list is one level below a value, a null list is two.
                self.definition.push(if length.is_some() {
                    self.max_definition - 1
                } else {
                    self.max_definition - 2
                });
                self.repetition.push(0);
            }
            Some(length) => {
                self.definition.extend(std::iter::repeat_n(self.max_definition, length));
                self.repetition.extend((0..length).map(|position| i16::from(position > 0)));
            }
        }
        self.is_list && (length.is_some() || self.max_definition > 1)
    }

    /// Writes the buffered values and clears the buffer.
    pub(super) fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<()> {
        let definition = (self.max_definition > 0).then_some(self.definition.as_slice());
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
            _ => {
                return Err(ParquetError::General(
                    "the values of a column do not match its schema".to_owned(),
                ));
            }
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
