//! Comparing arbitrary image files: the result does not depend on the order, and memory is bounded.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rollout::episode::fingerprint::Fingerprint;
use store::screenshots::is_same_image;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(Fingerprint::of(bytes), Fingerprint::of(bytes));
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let paths = [FOLDER.path().join("a.png"), FOLDER.path().join("b.png"), FOLDER.path().join("c.png")];
    for (path, content) in paths.iter().zip([first, second, bytes]) {
        std::fs::write(path, content).expect("write a file");
    }
    let both_orders = (is_same_image(&paths[0], &paths[1]), is_same_image(&paths[1], &paths[0]));
    if let (Ok(forward), Ok(backward)) = both_orders {
        assert_eq!(forward, backward);
    }
    // An additional byte makes the files differ, so that both images are decoded.
    std::fs::write(&paths[0], [bytes, b"x"].concat()).expect("write a file");
    drop(is_same_image(&paths[0], &paths[2]));
});
