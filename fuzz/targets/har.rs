//! Arbitrary HAR files: what is imported can be read, and is the same after it was exported and imported again.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use replay::{Archive, ArchiveOptions, RecorderOptions};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));

fn import(har: &[u8], name: &str) -> Option<(usize, std::sync::Arc<Archive>)> {
    let (path, directory) = (FOLDER.path().join("input.har"), FOLDER.path().join(name));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::write(&path, har).expect("write a file");
    let report = replay::import(&path, &directory, RecorderOptions::default()).ok()?;
    let archive = Archive::open(&directory, ArchiveOptions::default()).expect("our archive can be opened");
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    Some((report.exchanges, archive))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((count, archive)) = import(bytes, "first") else { return };
    assert_eq!(archive.exchanges().len(), count);
    let mut har = Vec::new();
    replay::har::export(&archive, &mut har).expect("an archive can be exported");
    let (again, second) = import(&har, "second").expect("our HAR file can be imported");
    assert_eq!(again, count);
    for index in 0..count {
        let (one, other) = (archive.exchange(index).expect("read"), second.exchange(index).expect("read"));
        assert_eq!((&one.request.url, &one.request.method), (&other.request.url, &other.request.method));
        assert_eq!(one.response().map(|response| (response.status, &response.body)), other.response().map(|response| (response.status, &response.body)));
    }
});
