//! Files of trajectories from elsewhere: what can be read from front to back can be read by its place, and equals it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use store::pt::PtFile;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("it.pt");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(file) = PtFile::open(&path) else { return };
    let Ok(all) = file.trajectories() else { return };
    // A table of contents that lies is another matter: those places are read by what it says.
    let told = file.entries().is_some();
    for (place, trajectory) in all.enumerate().take(50) {
        let Ok(trajectory) = trajectory else { break };
        let at_place = file.read(place);
        if !told {
            let at_place = at_place.expect("it was there a moment ago");
            assert_eq!(format!("{at_place:?}"), format!("{trajectory:?}"));
        }
    }
});
