//! Items on the stack of the pickle machine. A container under construction exists only there; freezing it makes it
//! immutable, computes its cost and fills the memo slots that were assigned to it.

use super::globals::Global;
use super::value::Builder;
use super::{Class, PickleError, Value};

/// An item on the stack.
#[derive(Debug)]
pub(super) enum StackItem {
    Value(Value),
    Global(Global),
    /// A container under construction and the memo slots assigned to it.
    Partial(PartialValue, Vec<u32>),
}

/// A container under construction.
#[derive(Debug)]
pub(super) enum PartialValue {
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Object(Class, Option<Value>),
}

impl PartialValue {
    pub(super) fn freeze(self, builder: Builder) -> Result<Value, PickleError> {
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
            _ => return Err(PickleError::Malformed("cannot append to something that is not a list")),
        }
        Ok(())
    }

    pub(super) fn add_to_set(&mut self, items: Vec<Value>) -> Result<(), PickleError> {
        match self {
            Self::Set(set) => set.extend(items),
            _ => return Err(PickleError::Malformed("cannot add items to something that is not a set")),
        }
        Ok(())
    }

    pub(super) fn set_entries(&mut self, items: Vec<Value>) -> Result<(), PickleError> {
        match self {
            Self::Dict(entries) => entries.extend(into_pairs(items)?),
            _ => return Err(PickleError::Malformed("cannot set entries of something that is not a dict")),
        }
        Ok(())
    }

    /// Sets the `__dict__` of an object. The state is the dict itself, or a tuple of the dict and the (absent) slots.
    pub(super) fn build(&mut self, state: Value) -> Result<(), PickleError> {
        let Self::Object(_, attributes @ None) = self else {
            return Err(PickleError::Malformed("cannot set the state of something that is not a new object"));
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
            return Err(PickleError::Malformed("the name of an attribute is not a string"));
        }
        *attributes = Some(state);
        Ok(())
    }
}

pub(super) fn into_pairs(items: Vec<Value>) -> Result<Vec<(Value, Value)>, PickleError> {
    if !items.len().is_multiple_of(2) {
        return Err(PickleError::Malformed("a dict has a key without a value"));
    }
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        if !is_hashable(&key) {
            return Err(PickleError::Malformed("a key of a dict is not a hashable value"));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn is_hashable(value: &Value) -> bool {
    !matches!(value, Value::List(_) | Value::Dict(_) | Value::Set(_) | Value::Object(_))
}
