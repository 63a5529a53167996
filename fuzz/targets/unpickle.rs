//! Pickles: each is data or refused, with the same result from a slice and byte by byte, and with memory proportional
//! to the input (the fuzzer fails on a large allocation).
#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use store::unpickle::{UnpickleLimits, load, load_from};

fuzz_target!(|bytes: &[u8]| {
    let limits = UnpickleLimits { expansion: 1 << 16, ..UnpickleLimits::default() };
    let from_slice = load(bytes, limits);
    let byte_by_byte = load_from(BufReader::with_capacity(1, bytes), bytes.len() as u64, limits);
    assert_eq!(format!("{from_slice:?}"), format!("{byte_by_byte:?}"));
});
