//! The values of a pickle. They are immutable and shared by reference, so they cannot contain themselves; each
//! container knows its depth and its expanded size.

use std::sync::Arc;

use super::{Class, PickleError, UnpickleLimits};

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

/// Entries in insertion order; the last of equal keys counts.
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

/// The depth of a value, and its size if nothing in it were shared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    depth: u32,
    pub(super) size: u64,
}

/// Approximate size of a value without its content.
const VALUE_BYTES: u64 = 32;

impl Cost {
    fn of(value: &Value) -> Self {
        let flat = |length: usize| Self { depth: 0, size: VALUE_BYTES + length as u64 };
        match value {
            Value::Text(text) => flat(text.len()),
            Value::Bytes(bytes) => flat(bytes.len()),
            Value::List(sequence) | Value::Tuple(sequence) | Value::Set(sequence) => sequence.cost,
            Value::Dict(mapping) => mapping.cost,
            // The steps of a trajectory share their task, which is converted once.
            Value::Object(object) if object.class == Class::Task => Self { size: VALUE_BYTES, ..object.cost },
            Value::Object(object) => object.cost,
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => flat(0),
        }
    }

    /// The cost of a container of `values`; an error if it exceeds a limit.
    fn of_container<'a>(
        values: impl Iterator<Item = &'a Value>,
        limits: UnpickleLimits,
        expansion: u64,
    ) -> Result<Self, PickleError> {
        let mut cost = Self { depth: 0, size: VALUE_BYTES };
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
            return Err(PickleError::Limit("shared values expand to too much"));
        }
        Ok(cost)
    }
}

/// Builds containers within the limits of one pickle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builder {
    pub(super) limits: UnpickleLimits,
    pub(super) expansion: u64,
}

impl Builder {
    pub(super) fn sequence(self, items: Vec<Value>) -> Result<Arc<Sequence>, PickleError> {
        let cost = Cost::of_container(items.iter(), self.limits, self.expansion)?;
        Ok(Arc::new(Sequence { items, cost }))
    }

    pub(super) fn mapping(self, entries: Vec<(Value, Value)>) -> Result<Arc<Mapping>, PickleError> {
        let keys_and_values = entries.iter().flat_map(|(key, value)| [key, value]);
        let cost = Cost::of_container(keys_and_values, self.limits, self.expansion)?;
        Ok(Arc::new(Mapping { entries, cost }))
    }

    pub(super) fn object(self, class: Class, attributes: Value) -> Result<Arc<Object>, PickleError> {
        let cost = Cost::of_container(std::iter::once(&attributes), self.limits, self.expansion)?;
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

    /// The value of a dict under a string key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_entries()?.iter().rev().find(|(name, _)| name.as_text() == Some(key)).map(|(_, value)| value)
    }

    /// The type of the value, for error messages.
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

    /// The expanded size.
    pub(crate) const fn size(&self) -> u64 {
        self.cost.size
    }
}
