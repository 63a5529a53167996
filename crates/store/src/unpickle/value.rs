//! What a pickle can hold here. Values are immutable once built and shared by reference, so they cannot contain
//! themselves; each container knows how deep it is and how much it would unfold to.

use std::sync::Arc;

use super::{Class, Limits, PickleError};

#[derive(Clone, Debug)]
pub enum Value {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<Sequence>),
    Tuple(Arc<Sequence>),
    Set(Arc<Sequence>),
    Dict(Arc<Mapping>),
    Object(Arc<Object>),
}

#[derive(Debug)]
pub struct Sequence {
    items: Vec<Value>,
    cost: Cost,
}

/// Entries in the order in which they were set; of equal keys the last counts.
#[derive(Debug)]
pub struct Mapping {
    entries: Vec<(Value, Value)>,
    cost: Cost,
}

#[derive(Debug)]
pub struct Object {
    class: Class,
    attributes: Value,
    cost: Cost,
}

/// How deep a value is, and how large it would be if nothing in it were shared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    depth: u32,
    pub(super) size: u64,
}

const EACH: u64 = 32;

impl Cost {
    fn of(value: &Value) -> Self {
        let flat = |length: usize| Self { depth: 0, size: EACH + length as u64 };
        match value {
            Value::Text(text) => flat(text.len()),
            Value::Bytes(bytes) => flat(bytes.len()),
            Value::List(sequence) | Value::Tuple(sequence) | Value::Set(sequence) => sequence.cost,
            Value::Dict(mapping) => mapping.cost,
            // A task is read once for a trajectory, however many steps share it.
            Value::Object(object) if object.class == Class::Task => Self { size: EACH, ..object.cost },
            Value::Object(object) => object.cost,
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => flat(0),
        }
    }

    fn around<'a>(
        values: impl Iterator<Item = &'a Value>,
        limits: Limits,
        expansion: u64,
    ) -> Result<Self, PickleError> {
        let mut cost = Self { depth: 0, size: EACH };
        for value in values {
            let inner = Self::of(value);
            cost.depth = cost.depth.max(inner.depth);
            cost.size = cost.size.saturating_add(inner.size);
        }
        cost.depth += 1;
        if cost.depth > limits.depth {
            return Err(PickleError::Limit("containers are nested too deeply"));
        }
        if cost.size > expansion {
            return Err(PickleError::Limit("shared values unfold to too much"));
        }
        Ok(cost)
    }
}

/// Builds containers within the limits of one pickle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builder {
    pub(super) limits: Limits,
    pub(super) expansion: u64,
}

impl Builder {
    pub(super) fn sequence(self, items: Vec<Value>) -> Result<Arc<Sequence>, PickleError> {
        let cost = Cost::around(items.iter(), self.limits, self.expansion)?;
        Ok(Arc::new(Sequence { items, cost }))
    }

    pub(super) fn mapping(self, entries: Vec<(Value, Value)>) -> Result<Arc<Mapping>, PickleError> {
        let both = entries.iter().flat_map(|(key, value)| [key, value]);
        let cost = Cost::around(both, self.limits, self.expansion)?;
        Ok(Arc::new(Mapping { entries, cost }))
    }

    pub(super) fn object(self, class: Class, attributes: Value) -> Result<Arc<Object>, PickleError> {
        let cost = Cost::around(std::iter::once(&attributes), self.limits, self.expansion)?;
        Ok(Arc::new(Object { class, attributes, cost }))
    }
}

impl Value {
    pub(super) fn size(&self) -> u64 {
        Cost::of(self).size
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list, tuple or set.
    pub fn as_items(&self) -> Option<&[Self]> {
        match self {
            Self::List(sequence) | Self::Tuple(sequence) | Self::Set(sequence) => Some(&sequence.items),
            _ => None,
        }
    }

    pub fn as_entries(&self) -> Option<&[(Self, Self)]> {
        match self {
            Self::Dict(mapping) => Some(&mapping.entries),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The entry of a dict under a text key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_entries()?.iter().rev().find(|(name, _)| name.as_text() == Some(key)).map(|(_, value)| value)
    }

    /// What it is, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Text(_) => "a str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Set(_) => "a set",
            Self::Dict(_) => "a dict",
            Self::Object(_) => "an object",
        }
    }
}

impl Object {
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The `__dict__` of the object.
    pub const fn attributes(&self) -> &Value {
        &self.attributes
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name)
    }

    /// What it would unfold to.
    pub(crate) const fn size(&self) -> u64 {
        self.cost.size
    }
}
