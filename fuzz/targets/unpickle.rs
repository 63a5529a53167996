//! Pickles: data or a refusal, the same whether it comes at once or byte by byte, in memory in proportion to the input
//! (the fuzzer stops at a single allocation beyond its limit).
#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use store::unpickle::{Limits, load, load_from};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { expansion: 1 << 16, ..Limits::default() };
    let at_once = load(bytes, limits);
    let drop_by_drop = load_from(BufReader::with_capacity(1, bytes), bytes.len() as u64, limits);
    assert_eq!(format!("{at_once:?}"), format!("{drop_by_drop:?}"));
});
