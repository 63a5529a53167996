//! The Python names that a pickle may refer to: the five classes, and what Python uses to build plain containers.

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

/// A name that a pickle may refer to; it never becomes part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    Class(Class),
    OrderedDict,
    Set,
    FrozenSet,
    /// `_codecs.encode`: protocol 2 writes bytes as a text and an encoding.
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
            _ => return Err(PickleError::Refused(printable(&format!("{module}.{name}")))),
        })
    }
}

/// Shortens and escapes a name from an untrusted file.
fn printable(name: &str) -> String {
    const MAX_CHARS: usize = 120;
    let mut text: String = name.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if name.chars().nth(MAX_CHARS).is_some() {
        text.push('…');
    }
    text
}
