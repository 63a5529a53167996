//! Records a small site with everything that an archive can hold, for the checks with other programs
//! (`scripts/test-archive`): `cargo run -p webgym-replay --example sample_archive -- DIR`.

#![allow(clippy::unwrap_used, reason = "a failure in an example should panic")]

#[path = "../tests/support/mod.rs"]
mod support;

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: sample_archive DIR");
        std::process::exit(2)
    });
    support::record(directory.as_ref(), support::site());
}
