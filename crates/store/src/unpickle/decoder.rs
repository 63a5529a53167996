//! Decodes bytes to instructions. Lengths are checked against the rest of the input before allocating, and memory
//! grows only with bytes that were actually read.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::PickleError;

/// One instruction with its argument. Payloads are empty if the caller skips them.
#[derive(Debug)]
pub(super) enum Op {
    /// Protocol and frame markers.
    Ignored,
    Mark,
    Stop,
    Pop,
    PopMark,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    EmptyList,
    Append,
    Appends,
    /// Builds a list of the values above the mark.
    List,
    EmptyDict,
    SetItem,
    SetItems,
    /// Builds a dict of the values above the mark.
    Dict,
    EmptySet,
    AddItems,
    FrozenSet,
    /// Builds a tuple of this many values from the top of the stack.
    TupleOf(usize),
    /// Builds a tuple of the values above the mark.
    Tuple,
    Global {
        module: String,
        name: String,
    },
    StackGlobal,
    Reduce,
    NewObject,
    Build,
    Put(u32),
    Memoize,
    Get(u32),
}

/// Whether to read the content of strings and bytes or to skip it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Read,
    Skip,
}

pub(super) struct Decoder<R> {
    input: R,
    remaining: u64,
}

/// Longer than any module or class name.
const MAX_NAME_BYTES: u64 = 1024;
/// Maximum length of an integer; the longest that occurs is the 10-byte magic number of PyTorch's old format.
const MAX_INTEGER_BYTES: u64 = 16;

impl<R: BufRead> Decoder<R> {
    pub(super) const fn new(input: R, length: u64) -> Self {
        Self { input, remaining: length }
    }

    /// Reads the next instruction with its argument.
    pub(super) fn next(&mut self, payload: Payload) -> Result<Op, PickleError> {
        let [code] = self.read_array()?;
        if let Some(op) = without_argument(code) {
            return Ok(op);
        }
        Ok(match code {
            0x80 => {
                let [protocol] = self.read_array()?;
                if !(2..=5).contains(&protocol) {
                    return Err(PickleError::Protocol(protocol));
                }
                Op::Ignored
            }
            0x95 => {
                self.read_array::<8>()?;
                Op::Ignored
            }
            b'K' => Op::Int(i128::from(self.read_array::<1>()?[0])),
            b'M' => Op::Int(i128::from(u16::from_le_bytes(self.read_array()?))),
            b'J' => Op::Int(i128::from(i32::from_le_bytes(self.read_array()?))),
            0x8a => {
                let [length] = self.read_array()?;
                Op::Int(self.read_integer(u64::from(length))?)
            }
            0x8b => {
                let length = u32::from_le_bytes(self.read_array()?);
                Op::Int(self.read_integer(u64::from(length))?)
            }
            b'G' => Op::Float(f64::from_be_bytes(self.read_array()?)),
            0x8c | b'X' | 0x8d | b'C' | b'B' | 0x8e => self.read_payload(code, payload)?,
            b'c' => Op::Global { module: self.read_name()?, name: self.read_name()? },
            b'q' => Op::Put(u32::from(self.read_array::<1>()?[0])),
            b'r' => Op::Put(u32::from_le_bytes(self.read_array()?)),
            b'h' => Op::Get(u32::from(self.read_array::<1>()?[0])),
            b'j' => Op::Get(u32::from_le_bytes(self.read_array()?)),
            other => return Err(self.refused_instruction(other)?),
        })
    }

    /// The error for an instruction that is not accepted; it says what the instruction would do.
    fn refused_instruction(&mut self, code: u8) -> Result<PickleError, PickleError> {
        let description = match code {
            b'i' => format!("{}.{}", self.read_name()?, self.read_name()?),
            b'o' => "a call of an object (OBJ)".to_owned(),
            0x92 => "an object created with keyword arguments (NEWOBJ_EX)".to_owned(),
            b'P' | b'Q' => "an object stored elsewhere, such as a tensor (PERSID)".to_owned(),
            0x82..=0x84 => "a registered extension (EXT)".to_owned(),
            0x96 => "a bytearray".to_owned(),
            0x97 | 0x98 => "an out-of-band buffer".to_owned(),
            b'2' => "a duplicate of the stack's top (DUP)".to_owned(),
            b'I' | b'L' | b'F' | b'S' | b'T' | b'U' | b'V' | b'g' | b'p' => {
                "an instruction of pickle protocols 0 and 1".to_owned()
            }
            other => return Ok(PickleError::Opcode(other)),
        };
        Ok(PickleError::Refused(description.chars().flat_map(char::escape_debug).collect()))
    }

    fn read_payload(&mut self, code: u8, payload: Payload) -> Result<Op, PickleError> {
        let length = match code {
            0x8c | b'C' => u64::from(self.read_array::<1>()?[0]),
            b'X' | b'B' => u64::from(u32::from_le_bytes(self.read_array()?)),
            _ => u64::from_le_bytes(self.read_array()?),
        };
        let is_text = matches!(code, 0x8c | b'X' | 0x8d);
        let bytes = if payload == Payload::Skip {
            self.skip(length)?;
            Vec::new()
        } else {
            self.read_bytes(length)?
        };
        Ok(if is_text { Op::Text(decode_text(bytes)) } else { Op::Bytes(bytes.into()) })
    }

    /// Subtracts `length` from what is left of the input.
    fn consume(&mut self, length: u64) -> Result<(), PickleError> {
        self.remaining = self.remaining.checked_sub(length).ok_or(PickleError::Truncated)?;
        Ok(())
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        self.consume(N as u64)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_bytes(&mut self, length: u64) -> Result<Vec<u8>, PickleError> {
        const MAX_PREALLOCATION: u64 = 1 << 20;
        self.consume(length)?;
        let mut bytes = Vec::with_capacity(length.min(MAX_PREALLOCATION) as usize);
        self.input.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(PickleError::Truncated) }
    }

    fn skip(&mut self, length: u64) -> Result<(), PickleError> {
        self.consume(length)?;
        let skipped = io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(PickleError::Truncated) }
    }

    fn read_integer(&mut self, length: u64) -> Result<i128, PickleError> {
        if length > MAX_INTEGER_BYTES {
            return Err(PickleError::Limit("an integer has more than 128 bits"));
        }
        let bytes = self.read_bytes(length)?;
        let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut padded = [if is_negative { 0xff } else { 0 }; 16];
        padded[..bytes.len()].copy_from_slice(&bytes);
        Ok(i128::from_le_bytes(padded))
    }

    /// Reads a name up to a line feed.
    fn read_name(&mut self) -> Result<String, PickleError> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(MAX_NAME_BYTES.min(self.remaining)).read_until(b'\n', &mut bytes)?;
        self.consume(bytes.len() as u64)?;
        if bytes.pop() != Some(b'\n') {
            return Err(PickleError::Malformed("a name is not terminated"));
        }
        String::from_utf8(bytes).map_err(|_| PickleError::Malformed("a name is not UTF-8"))
    }

    /// Reads the rest of the input, so that a checksum over all of it is verified.
    pub(super) fn read_to_end(&mut self) -> Result<(), PickleError> {
        io::copy(&mut self.input, &mut io::sink())?;
        Ok(())
    }
}

/// Returns the instruction of a code that is not followed by an argument.
fn without_argument(code: u8) -> Option<Op> {
    Some(match code {
        b'(' => Op::Mark,
        b'.' => Op::Stop,
        b'0' => Op::Pop,
        b'1' => Op::PopMark,
        b'N' => Op::None,
        0x88 => Op::Bool(true),
        0x89 => Op::Bool(false),
        b']' => Op::EmptyList,
        b'a' => Op::Append,
        b'e' => Op::Appends,
        b'l' => Op::List,
        b'}' => Op::EmptyDict,
        b's' => Op::SetItem,
        b'u' => Op::SetItems,
        b'd' => Op::Dict,
        0x8f => Op::EmptySet,
        0x90 => Op::AddItems,
        0x91 => Op::FrozenSet,
        b')' => Op::TupleOf(0),
        0x85 => Op::TupleOf(1),
        0x86 => Op::TupleOf(2),
        0x87 => Op::TupleOf(3),
        b't' => Op::Tuple,
        0x93 => Op::StackGlobal,
        b'R' => Op::Reduce,
        0x81 => Op::NewObject,
        b'b' => Op::Build,
        0x94 => Op::Memoize,
        _ => return None,
    })
}

/// Decodes a string. Lone surrogates, which Python allows, become replacement characters.
fn decode_text(bytes: Vec<u8>) -> Arc<str> {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into(),
    }
}
