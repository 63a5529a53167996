//! Encodes pickle opcodes: numbers, strings, containers, objects and the memo.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

/// A string that protocol 2 cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a string of {0} bytes is too long for pickle protocol 2")]
pub(crate) struct TextTooLong(usize);

/// Appends pickle opcodes to `buffer`. Names that occur in every step are stored in the memo once, with `define`, and
/// then read from there.
#[derive(Debug, Default)]
pub(crate) struct Pickler {
    pub(crate) buffer: Vec<u8>,
    names: HashMap<&'static str, u32>,
    next_memo: u32,
}

pub(super) type PickleResult = Result<(), TextTooLong>;

impl Pickler {
    pub(crate) fn protocol(&mut self) {
        self.buffer.extend_from_slice(&[0x80, 2]);
    }

    pub(crate) fn stop(&mut self) {
        self.buffer.push(b'.');
    }

    /// Stores a constant string in the memo; the stack does not change.
    pub(crate) fn define(&mut self, name: &'static str) -> PickleResult {
        self.text(name)?;
        let slot = self.put();
        self.buffer.push(b'0');
        self.names.insert(name, slot);
        Ok(())
    }

    /// Stores a class in the memo; the stack does not change.
    pub(crate) fn define_class(&mut self, module: &str, name: &'static str) {
        self.buffer.push(b'c');
        self.buffer.extend_from_slice(format!("{module}\n{name}\n").as_bytes());
        let slot = self.put();
        self.buffer.push(b'0');
        self.names.insert(name, slot);
    }

    /// Stores the top of the stack in the next memo slot.
    pub(crate) fn put(&mut self) -> u32 {
        let slot = self.next_memo;
        self.next_memo += 1;
        match u8::try_from(slot) {
            Ok(slot) => self.buffer.extend_from_slice(&[b'q', slot]),
            Err(_) => self.push_opcode(b'r', &slot.to_le_bytes()),
        }
        slot
    }

    pub(crate) fn get(&mut self, slot: u32) {
        match u8::try_from(slot) {
            Ok(slot) => self.buffer.extend_from_slice(&[b'h', slot]),
            Err(_) => self.push_opcode(b'j', &slot.to_le_bytes()),
        }
    }

    pub(crate) fn none(&mut self) {
        self.buffer.push(b'N');
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.buffer.push(if value { 0x88 } else { 0x89 });
    }

    pub(crate) fn integer(&mut self, value: i64) {
        if let Ok(value) = u8::try_from(value) {
            self.buffer.extend_from_slice(&[b'K', value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.push_opcode(b'M', &value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.push_opcode(b'J', &value.to_le_bytes());
        } else {
            self.long(value.into());
        }
    }

    pub(crate) fn unsigned(&mut self, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => self.long(value.into()),
        }
    }

    /// Two's complement, little-endian, with the fewest bytes that keep the sign.
    fn long(&mut self, value: i128) {
        let bytes = value.to_le_bytes();
        let filler = if value < 0 { 0xff } else { 0 };
        let mut length = bytes.len();
        while length > 1 && bytes[length - 1] == filler && (bytes[length - 2] & 0x80) == (filler & 0x80) {
            length -= 1;
        }
        self.buffer.extend_from_slice(&[0x8a, length as u8]);
        self.buffer.extend_from_slice(&bytes[..length]);
    }

    pub(crate) fn float(&mut self, value: f64) {
        self.push_opcode(b'G', &value.to_be_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) -> PickleResult {
        let length = u32::try_from(text.len()).map_err(|_| TextTooLong(text.len()))?;
        self.push_opcode(b'X', &length.to_le_bytes());
        self.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }

    pub(crate) fn optional_text(&mut self, text: Option<&str>) -> PickleResult {
        if let Some(text) = text {
            return self.text(text);
        }
        self.none();
        Ok(())
    }

    /// A string from the memo if it was defined, otherwise written in full.
    pub(crate) fn name(&mut self, name: &str) -> PickleResult {
        match self.names.get(name) {
            Some(slot) => {
                self.get(*slot);
                Ok(())
            }
            None => self.text(name),
        }
    }

    /// Starts a dict; keys and values follow in turn, then `end_dict`.
    pub(crate) fn begin_dict(&mut self) {
        self.buffer.extend_from_slice(b"}(");
    }

    pub(crate) fn end_dict(&mut self) {
        self.buffer.push(b'u');
    }

    /// Starts a list; its items follow, then `end_list`.
    pub(crate) fn begin_list(&mut self) {
        self.buffer.extend_from_slice(b"](");
    }

    pub(crate) fn end_list(&mut self) {
        self.buffer.push(b'e');
    }

    pub(crate) fn empty_list(&mut self) {
        self.buffer.push(b']');
    }

    /// Appends the top of the stack to the list below it.
    pub(crate) fn append(&mut self) {
        self.buffer.push(b'a');
    }

    /// Starts an instance of a defined class; `begin_attributes`, names and values in turn, and `end_object` follow.
    pub(crate) fn begin_object(&mut self, class: &str) -> PickleResult {
        self.name(class)?;
        self.buffer.extend_from_slice(b")\x81");
        Ok(())
    }

    pub(crate) fn begin_attributes(&mut self) {
        self.begin_dict();
    }

    pub(crate) fn end_object(&mut self) {
        self.buffer.extend_from_slice(b"ub");
    }

    pub(crate) fn value(&mut self, value: &Value) -> PickleResult {
        match value {
            Value::Null => self.none(),
            Value::Bool(value) => self.boolean(*value),
            Value::Number(number) => self.number(number),
            Value::String(text) => return self.text(text),
            Value::Array(items) => {
                self.begin_list();
                for item in items {
                    self.value(item)?;
                }
                self.end_list();
            }
            Value::Object(map) => return self.map(map),
        }
        Ok(())
    }

    pub(crate) fn map(&mut self, map: &Map<String, Value>) -> PickleResult {
        self.begin_dict();
        for (key, value) in map {
            self.text(key)?;
            self.value(value)?;
        }
        self.end_dict();
        Ok(())
    }

    fn number(&mut self, number: &Number) {
        if let Some(value) = number.as_i64() {
            self.integer(value);
        } else if let Some(value) = number.as_u64() {
            self.unsigned(value);
        } else {
            self.float(number.as_f64().unwrap_or(f64::NAN));
        }
    }

    fn push_opcode(&mut self, opcode: u8, bytes: &[u8]) {
        self.buffer.push(opcode);
        self.buffer.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_integers_use_the_fewest_bytes() {
        let cases: [(i64, &[u8]); 5] = [
            (1 << 31, &[0x8a, 5, 0, 0, 0, 0x80, 0]),
            (i64::from(i32::MIN) - 1, &[0x8a, 5, 0xff, 0xff, 0xff, 0x7f, 0xff]),
            (-1 << 39, &[0x8a, 5, 0, 0, 0, 0, 0x80]),
            (i64::MAX, &[0x8a, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            (i64::MIN, &[0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 0x80]),
        ];
        for (value, expected) in cases {
            let mut pickler = Pickler::default();
            pickler.integer(value);
            assert_eq!(pickler.buffer, expected, "{value}");
        }
        let mut pickler = Pickler::default();
        pickler.unsigned(u64::MAX);
        assert_eq!(pickler.buffer, [&[0x8a, 9][..], &[0xff; 8], &[0]].concat());
    }
}
