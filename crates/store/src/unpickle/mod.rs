//! Reads pickles as data. A pickle is a program; this machine runs only the part of it that builds plain containers
//! and the five classes of `webgym.data.components`, and refuses everything else by name. No input makes it run
//! code, recurse without bound or take more than memory and time in proportion to its length.

mod calls;
mod decode;
mod globals;
mod machine;
mod open;
mod uses;
mod value;

use std::io::BufRead;

pub use globals::Class;
pub use machine::Machine;
pub use uses::{Uses, count_uses};
pub use value::{Object, Value};

#[derive(Debug, thiserror::Error)]
pub enum PickleError {
    #[error("the pickle asks for {0}, which is not plain data; refused")]
    Refused(String),
    #[error("the pickle ends in the middle")]
    Truncated,
    #[error("byte {0:#04x} is no instruction of pickle protocols 2 to 5")]
    Opcode(u8),
    #[error("pickle protocol {0} is not one of 2 to 5")]
    Protocol(u8),
    #[error("the pickle is malformed: {0}")]
    Malformed(&'static str),
    #[error("the pickle goes beyond a limit: {0}")]
    Limit(&'static str),
    #[error("cannot read the pickle: {0}")]
    Io(#[source] std::io::Error),
}

impl From<std::io::Error> for PickleError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Io(error),
        }
    }
}

/// How far a pickle may go. The defaults are far above anything that the Python system writes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Containers inside containers.
    pub depth: u32,
    /// Values waiting on the stack.
    pub stack: usize,
    /// Size of what shared values unfold to, beyond what the length of the input allows by itself.
    pub expansion: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 256, stack: 1 << 20, expansion: 64 << 20 }
    }
}

impl Limits {
    /// Sharing makes small inputs unfold to large values; a little of that is normal, a lot is an attack.
    pub(crate) const fn expansion_of(&self, input_length: u64) -> u64 {
        self.expansion.saturating_add(input_length.saturating_mul(32))
    }
}

/// Builds the one value that `bytes` describe.
pub fn load(bytes: &[u8], limits: Limits) -> Result<Value, PickleError> {
    load_from(bytes, bytes.len() as u64, limits)
}

/// Builds one value from the start of a stream of at most `length` bytes.
pub fn load_from<R: BufRead>(input: R, length: u64, limits: Limits) -> Result<Value, PickleError> {
    Machine::new(input, length, limits).run()
}
