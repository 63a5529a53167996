//! The names that a pickle may ask for: the five classes and what Python needs to spell plain containers.

use std::fmt;

use super::PickleError;

/// The classes of `webgym.data.components`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    Task,
    Observation,
    Action,
    Response,
    Reward,
}

impl Class {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "Task",
            Self::Observation => "Observation",
            Self::Action => "Action",
            Self::Response => "Response",
            Self::Reward => "Reward",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Something that a pickle may name; it never becomes part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    Class(Class),
    OrderedDict,
    Set,
    FrozenSet,
    /// How protocol 2 spells bytes: text and the name of an encoding.
    Encode,
}

impl Global {
    pub(super) fn find(module: &str, name: &str) -> Result<Self, PickleError> {
        Ok(match (module, name) {
            ("webgym.data.components", "Task") => Self::Class(Class::Task),
            ("webgym.data.components", "Observation") => Self::Class(Class::Observation),
            ("webgym.data.components", "Action") => Self::Class(Class::Action),
            ("webgym.data.components", "Response") => Self::Class(Class::Response),
            ("webgym.data.components", "Reward") => Self::Class(Class::Reward),
            ("collections", "OrderedDict") => Self::OrderedDict,
            ("builtins" | "__builtin__", "set") => Self::Set,
            ("builtins" | "__builtin__", "frozenset") => Self::FrozenSet,
            ("_codecs", "encode") => Self::Encode,
            _ => return Err(PickleError::Refused(readable(&format!("{module}.{name}")))),
        })
    }
}

/// A name from a hostile file, fit to be printed.
fn readable(name: &str) -> String {
    const MOST: usize = 120;
    let mut text: String = name.chars().take(MOST).flat_map(char::escape_debug).collect();
    if name.chars().nth(MOST).is_some() {
        text.push('…');
    }
    text
}
