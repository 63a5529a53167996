//! Reads pickles as data. A pickle is a program; this reader runs only the instructions that build plain containers
//! and the five classes of `webgym.data.components`, and refuses everything else by name. It never runs code, its
//! recursion is bounded, and its memory and time are proportional to the length of the input.

mod decoder;
mod globals;
mod machine;
mod memo_uses;
mod reduce;
mod stack_item;
mod value;

use std::io::BufRead;

pub use globals::Class;
pub use machine::Machine;
pub use memo_uses::{MemoUses, count_memo_uses};
pub use value::{Object, Value};

#[derive(Debug, thiserror::Error)]
pub enum PickleError {
    #[error("the pickle contains {0}; only plain data is accepted")]
    Refused(String),
    #[error("the pickle is truncated")]
    Truncated,
    #[error("byte {0:#04x} is not an instruction of pickle protocols 2 to 5")]
    Opcode(u8),
    #[error("pickle protocol {0} is not supported; supported are 2 to 5")]
    Protocol(u8),
    #[error("the pickle is malformed: {0}")]
    Malformed(&'static str),
    #[error("the pickle exceeds a limit: {0}")]
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

/// Limits for a pickle. The defaults are far above what the Python system writes.
#[derive(Clone, Copy, Debug)]
pub struct UnpickleLimits {
    /// Maximum nesting of containers.
    pub depth: u32,
    /// Maximum number of values on the stack.
    pub stack: usize,
    /// Maximum expanded size of shared values, in addition to an allowance proportional to the length of the input.
    pub expansion: u64,
}

impl Default for UnpickleLimits {
    fn default() -> Self {
        Self { depth: 256, stack: 1 << 20, expansion: 64 << 20 }
    }
}

impl UnpickleLimits {
    /// The maximum expanded size for an input. Shared values let a small input expand to a large value; some sharing
    /// is normal, much more is an attack.
    pub(crate) const fn max_expansion(&self, input_length: u64) -> u64 {
        self.expansion.saturating_add(input_length.saturating_mul(32))
    }
}

/// Builds the value of a pickle.
pub fn load(bytes: &[u8], limits: UnpickleLimits) -> Result<Value, PickleError> {
    load_from(bytes, bytes.len() as u64, limits)
}

/// Builds the value of the first pickle in a stream of at most `length` bytes.
pub fn load_from<R: BufRead>(input: R, length: u64, limits: UnpickleLimits) -> Result<Value, PickleError> {
    Machine::new(input, length, limits).run()
}
