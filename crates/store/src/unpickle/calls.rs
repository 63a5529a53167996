//! The few calls that spell plain data: making an object of one of the five classes, an ordered dict, a set, bytes.

use std::io::BufRead;
use std::sync::Arc;

use super::globals::Global;
use super::machine::{Done, Machine};
use super::open::{Item, Open};
use super::{PickleError, Value};

impl<R: BufRead> Machine<R> {
    fn pop_global(&mut self) -> Result<Global, PickleError> {
        match self.pop()? {
            Item::Global(global) => Ok(global),
            _ => Err(PickleError::Malformed("a value is where a class should be")),
        }
    }

    pub(super) fn stack_global(&mut self) -> Done {
        let name = self.pop_value()?;
        let module = self.pop_value()?;
        match (module.as_text(), name.as_text()) {
            (Some(module), Some(name)) => self.push_item(Item::Global(Global::find(module, name)?)),
            _ => Err(PickleError::Malformed("the name of a class is not a text")),
        }
    }

    pub(super) fn new_object(&mut self) -> Done {
        let arguments = self.pop_value()?;
        match (self.pop_global()?, arguments.as_items()) {
            (Global::Class(class), Some([])) => self.push_open(Open::Object(class, None)),
            (Global::OrderedDict, Some([])) => self.push_open(Open::Dict(Vec::new())),
            _ => Err(PickleError::Malformed("an object is made with arguments")),
        }
    }

    /// The calls that spell plain data; any other callable was refused when it was named.
    pub(super) fn reduce(&mut self) -> Done {
        let arguments = self.pop_value()?;
        let Value::Tuple(_) = &arguments else {
            return Err(PickleError::Malformed("a call without a tuple of arguments"));
        };
        match (self.pop_global()?, arguments.as_items()) {
            (Global::Class(class), Some([])) => self.push_open(Open::Object(class, None)),
            (Global::OrderedDict, Some([])) => self.push_open(Open::Dict(Vec::new())),
            (Global::Set | Global::FrozenSet, Some([])) => self.push_open(Open::Set(Vec::new())),
            (Global::Set | Global::FrozenSet, Some([items])) => match items {
                Value::List(items) | Value::Tuple(items) | Value::Set(items) => {
                    self.push(Value::Set(Arc::clone(items)))
                }
                _ => Err(PickleError::Malformed("a set is made of something that is not a list")),
            },
            (Global::Encode, Some([Value::Text(text), Value::Text(encoding)])) if &**encoding == "latin1" => {
                // Nothing of ours holds bytes: little of this is expected, and it is slow.
                self.charge(text.len() as u64 * 16)?;
                self.push(Value::Bytes(latin1(text)?))
            }
            _ => Err(PickleError::Malformed("a call with arguments that it does not take")),
        }
    }
}

fn latin1(text: &str) -> Result<Arc<[u8]>, PickleError> {
    text.chars()
        .map(|letter| u8::try_from(letter).map_err(|_| PickleError::Malformed("bytes above 255")))
        .collect()
}
