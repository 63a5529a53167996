//! Arbitrary WARC files: what can be read is the same when it is read again by its place, and after it was recorded by
//! us; reading never needs more memory than its limit.
#![no_main]

use std::{path::Path, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use replay::{
    Archive, ArchiveOptions, Recorder, RecorderOptions, Redaction,
    warc::{Block, Limits, WarcReader},
};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));
const LIMITS: Limits = Limits { max_block: 1 << 20, max_header: 1 << 16 };

fuzz_target!(|bytes: &[u8]| {
    let name = Path::new("input.warc.gz");
    let mut end = 0;
    for record in WarcReader::new(name, bytes, LIMITS) {
        let Ok(record) = record else { break };
        assert!(record.offset >= end && record.length > 0);
        end = record.offset + record.length;
        if let Block::Complete(block) = &record.block {
            assert!(block.len() as u64 <= LIMITS.max_block);
        }
        let part = &bytes[record.offset as usize..end as usize];
        let again = WarcReader::new(name, part, LIMITS).next().expect("a record").expect("the record was read before");
        assert_eq!((again.header, again.block), (record.header, record.block));
    }
    let path = FOLDER.path().join(name);
    std::fs::write(&path, bytes).expect("write a file");
    let options = || ArchiveOptions { limits: LIMITS, ..ArchiveOptions::default() };
    let Ok(archive) = Archive::open_files(vec![path], options()) else { return };
    let copy = FOLDER.path().join("copy");
    let _ = std::fs::remove_dir_all(&copy);
    let keep = RecorderOptions { redaction: Redaction::none(), ..RecorderOptions::default() };
    let recorder = Recorder::open(&copy, keep).expect("an empty folder can be opened");
    let mut recorded = 0;
    for index in 0..archive.exchanges().len() {
        let exchange = archive.exchange(index).expect("an exchange that was indexed can be read");
        recorded += usize::from(recorder.append(exchange).is_ok());
    }
    recorder.finish().expect("the archive can be finished");
    let copied = Archive::open(&copy, options()).expect("our archive can be opened");
    assert!(copied.problems().is_empty(), "{:?}", copied.problems());
    assert_eq!(copied.exchanges().len(), recorded);
});
