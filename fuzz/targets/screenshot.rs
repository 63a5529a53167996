//! Screenshots from anywhere: equal pictures are equal, whatever else they are, in bounded memory.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rollout::episode::screenshots::Fingerprint;
use store::screenshots::is_same_image;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(Fingerprint::of(bytes), Fingerprint::of(bytes));
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let paths = [FOLDER.path().join("a.png"), FOLDER.path().join("b.png"), FOLDER.path().join("c.png")];
    for (path, content) in paths.iter().zip([first, second, bytes]) {
        std::fs::write(path, content).expect("a file");
    }
    let either_way = (is_same_image(&paths[0], &paths[1]), is_same_image(&paths[1], &paths[0]));
    if let (Ok(forth), Ok(back)) = either_way {
        assert_eq!(forth, back);
    }
    // One picture against itself with a byte behind it: decoded, if it can be.
    std::fs::write(&paths[0], [bytes, b"x"].concat()).expect("a file");
    drop(is_same_image(&paths[0], &paths[2]));
});
