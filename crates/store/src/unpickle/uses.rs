//! A first pass that counts how often each memo slot will be fetched. Python puts nearly every value into the memo
//! and fetches few of them again; knowing which lets the second pass drop a trajectory as soon as it was handed out.

use std::collections::HashMap;
use std::io::BufRead;

use super::PickleError;
use super::decode::{Decoder, Op, Payload};

/// Slot → how many fetches are still to come.
pub type Uses = HashMap<u32, u32>;

/// Reads one pickle without building anything; then the rest of the input, so that a checksum over it is verified.
pub fn count_uses<R: BufRead>(input: R, length: u64) -> Result<Uses, PickleError> {
    let mut decoder = Decoder::new(input, length);
    let mut uses = Uses::new();
    loop {
        match decoder.next(Payload::Skip)? {
            Op::Get(slot) => *uses.entry(slot).or_default() += 1,
            Op::Stop => break,
            _ => {}
        }
    }
    decoder.drain()?;
    Ok(uses)
}
