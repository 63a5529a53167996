//! Counts how often each memo slot is read. Python stores nearly every value in the memo and reads few of them again;
//! with the counts, a second pass can drop each trajectory as soon as it has been returned.

use std::collections::HashMap;
use std::io::BufRead;

use super::PickleError;
use super::decoder::{Decoder, Op, Payload};

/// Maps a memo slot to the number of reads that are still to come.
pub type MemoUses = HashMap<u32, u32>;

/// Reads one pickle without building values, then the rest of the input, so that its checksum is verified.
pub fn count_memo_uses<R: BufRead>(input: R, length: u64) -> Result<MemoUses, PickleError> {
    let mut decoder = Decoder::new(input, length);
    let mut uses = MemoUses::new();
    loop {
        match decoder.next(Payload::Skip)? {
            Op::Get(slot) => *uses.entry(slot).or_default() += 1,
            Op::Stop => break,
            _ => {}
        }
    }
    decoder.read_to_end()?;
    Ok(uses)
}
