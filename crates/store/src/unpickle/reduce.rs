//! The calls in a pickle that build plain data: an object of one of the five classes, an ordered dict, a set, bytes.

use std::io::BufRead;
use std::sync::Arc;

use super::globals::Global;
use super::machine::{Machine, StepResult};
use super::stack_item::{PartialValue, StackItem};
use super::{PickleError, Value};

impl<R: BufRead> Machine<R> {
    fn pop_global(&mut self) -> Result<Global, PickleError> {
        match self.pop()? {
            StackItem::Global(global) => Ok(global),
            _ => Err(PickleError::Malformed("expected a class, found a value")),
        }
    }

    pub(super) fn stack_global(&mut self) -> StepResult {
        let name = self.pop_value()?;
        let module = self.pop_value()?;
        match (module.as_text(), name.as_text()) {
            (Some(module), Some(name)) => self.push_item(StackItem::Global(Global::find(module, name)?)),
            _ => Err(PickleError::Malformed("the name of a class is not a string")),
        }
    }

    pub(super) fn new_object(&mut self) -> StepResult {
        let arguments = self.pop_value()?;
        match (self.pop_global()?, arguments.as_items()) {
            (Global::Class(class), Some([])) => self.push_partial(PartialValue::Object(class, None)),
            (Global::OrderedDict, Some([])) => self.push_partial(PartialValue::Dict(Vec::new())),
            _ => Err(PickleError::Malformed("an object is created with arguments")),
        }
    }

    /// Runs a call of one of the allowed names; any other name was refused when the pickle referred to it.
    pub(super) fn reduce(&mut self) -> StepResult {
        let arguments = self.pop_value()?;
        let Value::Tuple(_) = &arguments else {
            return Err(PickleError::Malformed("the arguments of a call are not a tuple"));
        };
        match (self.pop_global()?, arguments.as_items()) {
            (Global::Class(class), Some([])) => self.push_partial(PartialValue::Object(class, None)),
            (Global::OrderedDict, Some([])) => self.push_partial(PartialValue::Dict(Vec::new())),
            (Global::Set | Global::FrozenSet, Some([])) => self.push_partial(PartialValue::Set(Vec::new())),
            (Global::Set | Global::FrozenSet, Some([items])) => match items {
                Value::List(items) | Value::Tuple(items) | Value::Set(items) => {
                    self.push(Value::Set(Arc::clone(items)))
                }
                _ => Err(PickleError::Malformed("a set is created from something that is not a list")),
            },
            (Global::Encode, Some([Value::Text(text), Value::Text(encoding)])) if &**encoding == "latin1" => {
                // This conversion is slow and our files contain no bytes, so charge more than the length.
                self.charge(text.len() as u64 * 16)?;
                self.push(Value::Bytes(latin1(text)?))
            }
            _ => Err(PickleError::Malformed("a call has unexpected arguments")),
        }
    }
}

fn latin1(text: &str) -> Result<Arc<[u8]>, PickleError> {
    text.chars()
        .map(|character| {
            u8::try_from(character).map_err(|_| PickleError::Malformed("bytes contain a character above 255"))
        })
        .collect()
}
