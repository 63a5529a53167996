//! Values under construction. They live on the stack only; closing one makes it immutable, weighs it and fills the
//! memo slots that were given to it while it was open.

use super::globals::Global;
use super::value::Builder;
use super::{Class, PickleError, Value};

/// What can lie on the stack.
#[derive(Debug)]
pub(super) enum Item {
    Done(Value),
    Global(Global),
    Open(Open, Vec<u32>),
}

#[derive(Debug)]
pub(super) enum Open {
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Object(Class, Option<Value>),
}

impl Open {
    pub(super) fn close(self, builder: Builder) -> Result<Value, PickleError> {
        Ok(match self {
            Self::List(items) => Value::List(builder.sequence(items)?),
            Self::Set(items) => Value::Set(builder.sequence(items)?),
            Self::Dict(entries) => Value::Dict(builder.mapping(entries)?),
            Self::Object(class, attributes) => {
                let attributes = match attributes {
                    Some(attributes) => attributes,
                    None => Value::Dict(builder.mapping(Vec::new())?),
                };
                Value::Object(builder.object(class, attributes)?)
            }
        })
    }

    pub(super) fn append(&mut self, items: Vec<Value>) -> Result<(), PickleError> {
        match self {
            Self::List(list) => list.extend(items),
            _ => return Err(PickleError::Malformed("items are appended to something that is not a list")),
        }
        Ok(())
    }

    pub(super) fn add(&mut self, items: Vec<Value>) -> Result<(), PickleError> {
        match self {
            Self::Set(set) => set.extend(items),
            _ => return Err(PickleError::Malformed("items are added to something that is not a set")),
        }
        Ok(())
    }

    pub(super) fn set(&mut self, items: Vec<Value>) -> Result<(), PickleError> {
        match self {
            Self::Dict(entries) => entries.extend(pairs(items)?),
            _ => return Err(PickleError::Malformed("entries are set on something that is not a dict")),
        }
        Ok(())
    }

    /// Gives an object its `__dict__`, alone or as the first half of Python's pair with the slots.
    pub(super) fn build(&mut self, state: Value) -> Result<(), PickleError> {
        let Self::Object(_, attributes @ None) = self else {
            return Err(PickleError::Malformed("state is set on something that takes none"));
        };
        let state = match &state {
            Value::Tuple(_) => match state.as_items() {
                Some([state @ Value::Dict(_), Value::None]) => state.clone(),
                _ => return Err(PickleError::Malformed("the state of an object is not a dict")),
            },
            _ => state,
        };
        let Some(entries) = state.as_entries() else {
            return Err(PickleError::Malformed("the state of an object is not a dict"));
        };
        if entries.iter().any(|(name, _)| name.as_text().is_none()) {
            return Err(PickleError::Malformed("the name of an attribute is not a text"));
        }
        *attributes = Some(state);
        Ok(())
    }
}

pub(super) fn pairs(items: Vec<Value>) -> Result<Vec<(Value, Value)>, PickleError> {
    if !items.len().is_multiple_of(2) {
        return Err(PickleError::Malformed("a dict has a key without a value"));
    }
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        if !is_key(&key) {
            return Err(PickleError::Malformed("a key of a dict is not a plain value"));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn is_key(value: &Value) -> bool {
    !matches!(value, Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Object(_))
}
