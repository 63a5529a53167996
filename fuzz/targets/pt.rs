//! Arbitrary `.pt` files: a trajectory that can be read in order is the same when it is read by its position.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use store::pt::PtFile;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("input.pt");
    std::fs::write(&path, bytes).expect("write a file");
    let Ok(file) = PtFile::open(&path) else { return };
    let Ok(trajectories) = file.trajectories() else { return };
    // A wrong index gives other positions, so only files without an index are compared.
    let has_index = file.entries().is_some();
    for (position, trajectory) in trajectories.enumerate().take(50) {
        let Ok(trajectory) = trajectory else { break };
        let by_position = file.read(position);
        if !has_index {
            let by_position = by_position.expect("the trajectory was read before");
            assert_eq!(format!("{by_position:?}"), format!("{trajectory:?}"));
        }
    }
});
