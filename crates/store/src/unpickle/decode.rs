//! Bytes to instructions. Lengths are checked against what is left of the input before anything is allocated, and
//! memory grows only with bytes that really came.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::PickleError;

/// One instruction with its argument. Payloads are empty when the caller asked to skip them.
#[derive(Debug)]
pub(super) enum Op {
    /// Protocol and frame marks: nothing to do.
    Nothing,
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
    /// A list of all above the mark.
    List,
    EmptyDict,
    SetItem,
    SetItems,
    /// A dict of all above the mark.
    Dict,
    EmptySet,
    AddItems,
    FrozenSet,
    /// A tuple of so many from the top.
    TupleOf(usize),
    /// A tuple of all above the mark.
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

/// Whether texts and bytes are wanted, or only the shape of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Read,
    Skip,
}

pub(super) struct Decoder<R> {
    input: R,
    remaining: u64,
}

/// A module or class name is never longer.
const MAX_NAME: u64 = 1024;
/// Bytes of an integer; the largest that occurs is the 10-byte mark of PyTorch's old format.
const MAX_INTEGER: u64 = 16;

impl<R: BufRead> Decoder<R> {
    pub(super) const fn new(input: R, length: u64) -> Self {
        Self { input, remaining: length }
    }

    pub(super) fn next(&mut self, payload: Payload) -> Result<Op, PickleError> {
        let [code] = self.array()?;
        Ok(match code {
            0x80 => {
                let [protocol] = self.array()?;
                if !(2..=5).contains(&protocol) {
                    return Err(PickleError::Protocol(protocol));
                }
                Op::Nothing
            }
            0x95 => {
                self.array::<8>()?;
                Op::Nothing
            }
            b'(' => Op::Mark,
            b'.' => Op::Stop,
            b'0' => Op::Pop,
            b'1' => Op::PopMark,
            b'N' => Op::None,
            0x88 => Op::Bool(true),
            0x89 => Op::Bool(false),
            b'K' => Op::Int(i128::from(self.array::<1>()?[0])),
            b'M' => Op::Int(i128::from(u16::from_le_bytes(self.array()?))),
            b'J' => Op::Int(i128::from(i32::from_le_bytes(self.array()?))),
            0x8a => {
                let [length] = self.array()?;
                Op::Int(self.integer(u64::from(length))?)
            }
            0x8b => {
                let length = u32::from_le_bytes(self.array()?);
                Op::Int(self.integer(u64::from(length))?)
            }
            b'G' => Op::Float(f64::from_be_bytes(self.array()?)),
            0x8c | b'X' | 0x8d | b'C' | b'B' | 0x8e => self.payload(code, payload)?,
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
            b'c' => Op::Global { module: self.line()?, name: self.line()? },
            0x93 => Op::StackGlobal,
            b'R' => Op::Reduce,
            0x81 => Op::NewObject,
            b'b' => Op::Build,
            b'q' => Op::Put(u32::from(self.array::<1>()?[0])),
            b'r' => Op::Put(u32::from_le_bytes(self.array()?)),
            0x94 => Op::Memoize,
            b'h' => Op::Get(u32::from(self.array::<1>()?[0])),
            b'j' => Op::Get(u32::from_le_bytes(self.array()?)),
            other => return Err(self.refusal(other)?),
        })
    }

    /// The instructions that exist but are not for data, told by what they would do.
    fn refusal(&mut self, code: u8) -> Result<PickleError, PickleError> {
        let what = match code {
            b'i' => format!("{}.{}", self.line()?, self.line()?),
            b'o' => "a call of an object (OBJ)".to_owned(),
            0x92 => "a construction with keywords (NEWOBJ_EX)".to_owned(),
            b'P' | b'Q' => "an object stored elsewhere, such as a tensor (PERSID)".to_owned(),
            0x82..=0x84 => "a registered extension (EXT)".to_owned(),
            0x96 => "a bytearray".to_owned(),
            0x97 | 0x98 => "a buffer outside of the pickle".to_owned(),
            b'2' => "a duplicate of the stack's top (DUP)".to_owned(),
            b'I' | b'L' | b'F' | b'S' | b'T' | b'U' | b'V' | b'g' | b'p' => {
                "a notation of pickle protocols 0 and 1".to_owned()
            }
            other => return Ok(PickleError::Opcode(other)),
        };
        Ok(PickleError::Refused(what.chars().flat_map(char::escape_debug).collect()))
    }

    fn payload(&mut self, code: u8, payload: Payload) -> Result<Op, PickleError> {
        let length = match code {
            0x8c | b'C' => u64::from(self.array::<1>()?[0]),
            b'X' | b'B' => u64::from(u32::from_le_bytes(self.array()?)),
            _ => u64::from_le_bytes(self.array()?),
        };
        let is_text = matches!(code, 0x8c | b'X' | 0x8d);
        let bytes = if payload == Payload::Skip {
            self.skip(length)?;
            Vec::new()
        } else {
            self.bytes(length)?
        };
        Ok(if is_text { Op::Text(text(bytes)) } else { Op::Bytes(bytes.into()) })
    }

    fn take(&mut self, length: u64) -> Result<(), PickleError> {
        self.remaining = self.remaining.checked_sub(length).ok_or(PickleError::Truncated)?;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        self.take(N as u64)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, PickleError> {
        const AT_ONCE: u64 = 1 << 20;
        self.take(length)?;
        let mut bytes = Vec::with_capacity(length.min(AT_ONCE) as usize);
        self.input.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(PickleError::Truncated) }
    }

    fn skip(&mut self, length: u64) -> Result<(), PickleError> {
        self.take(length)?;
        let skipped = io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(PickleError::Truncated) }
    }

    fn integer(&mut self, length: u64) -> Result<i128, PickleError> {
        if length > MAX_INTEGER {
            return Err(PickleError::Limit("an integer has more than 128 bits"));
        }
        let bytes = self.bytes(length)?;
        let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut padded = [if is_negative { 0xff } else { 0 }; 16];
        padded[..bytes.len()].copy_from_slice(&bytes);
        Ok(i128::from_le_bytes(padded))
    }

    /// A name up to a line feed.
    fn line(&mut self) -> Result<String, PickleError> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(MAX_NAME.min(self.remaining)).read_until(b'\n', &mut bytes)?;
        self.take(bytes.len() as u64)?;
        if bytes.pop() != Some(b'\n') {
            return Err(PickleError::Malformed("a name does not end"));
        }
        String::from_utf8(bytes).map_err(|_| PickleError::Malformed("a name is not text"))
    }

    /// Reads on to the end, so that a checksum over the whole input is verified.
    pub(super) fn drain(&mut self) -> Result<(), PickleError> {
        io::copy(&mut self.input, &mut io::sink())?;
        Ok(())
    }
}

/// Python allows lone surrogates in texts, Rust does not: they become replacement characters.
fn text(bytes: Vec<u8>) -> Arc<str> {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into(),
    }
}
