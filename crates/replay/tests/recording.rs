//! Archives that are written and read again: nothing is lost, duplicates are stored once, a kill costs one exchange.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::{fs, sync::Arc, thread};

use replay::{Cursor, Outcome, Recorder, RecorderOptions, Request, index, layout};
use support::{all, decompressed, get, open, record, site, warc};

#[test]
fn recorded_exchanges_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), site());
    let archive = open(directory.path());
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    let read = all(&archive);
    assert_eq!(read.len(), site().len());
    for (read, recorded) in read.iter().zip(site()) {
        assert_eq!(read.started, recorded.started);
        assert_eq!(
            (&read.request.url, &read.request.method),
            (&recorded.request.url, &recorded.request.method)
        );
        assert_eq!(read.request.body, recorded.request.body);
        assert_eq!(read.frames, recorded.frames);
        assert_eq!(
            (read.timing, read.remote, &read.session),
            (recorded.timing, recorded.remote, &recorded.session)
        );
        match (&read.outcome, &recorded.outcome) {
            (Outcome::Response(read), Outcome::Response(recorded)) => {
                assert_eq!((read.status, &read.body), (recorded.status, &recorded.body));
                assert!(!read.headers.contains("transfer-encoding"));
            }
            (read, recorded) => assert_eq!(read, recorded),
        }
    }
    assert!(replay::check(directory.path()).unwrap().is_intact());
}

#[test]
fn equal_bodies_are_stored_once_also_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let body = "x".repeat(10_000);
    record(directory.path(), vec![get(0, "http://a.test/1", "text/plain", &body)]);
    let recorder = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
    recorder.append(get(1, "http://a.test/2", "text/plain", &body)).unwrap();
    recorder.append(get(2, "http://a.test/3", "text/plain", "short")).unwrap();
    assert_eq!(recorder.finish().unwrap().revisits, 1);
    let files = layout::warc_files(directory.path()).unwrap();
    assert_eq!(files.len(), 2);
    let total: usize = files.iter().map(|path| decompressed(path).len()).sum();
    assert!(total < 18_000, "{total} bytes");
    let archive = open(directory.path());
    assert_eq!(archive.body(1).unwrap(), body);
    let mut cursor = Cursor::new(archive);
    assert!(matches!(cursor.find(&Request::get("http://a.test/2")), replay::Answer::Found(_)));
}

#[test]
fn incomplete_end_is_cut_off_and_everything_before_it_is_kept() {
    let complete = tempfile::tempdir().unwrap();
    record(complete.path(), site());
    let bytes = fs::read(warc(complete.path())).unwrap();
    let name = layout::warc_files(complete.path()).unwrap()[0].file_name().unwrap().to_owned();
    let count = site().len();
    // Every place near the end and some in between.
    let cuts = (bytes.len() - 300..bytes.len()).step_by(23).chain((20..bytes.len()).step_by(457));
    for cut in cuts {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("archive")).unwrap();
        let path = directory.path().join("archive").join(&name);
        fs::write(&path, &bytes[..cut]).unwrap();
        let before = open(directory.path());
        let recorder = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
        for found in recorder.recovered() {
            assert_eq!(found.removed_bytes, Some(cut as u64 - fs::metadata(&path).unwrap().len()));
        }
        recorder.append(get(999, "http://new.test/", "text/plain", "new")).unwrap();
        recorder.finish().unwrap();
        let after = open(directory.path());
        assert!(after.problems().is_empty(), "cut at {cut}: {:?}", after.problems());
        assert_eq!(after.exchanges().len(), before.exchanges().len() + 1, "cut at {cut}");
        assert!(before.exchanges().len() <= count);
    }
}

#[test]
fn sessions_record_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let options = RecorderOptions { max_file_bytes: 20_000, ..RecorderOptions::default() };
    let recorder = Arc::new(Recorder::open(directory.path(), options).unwrap());
    let threads: Vec<_> = (0..8)
        .map(|session| {
            let recorder = Arc::clone(&recorder);
            thread::spawn(move || {
                for index in 0..50 {
                    let url = format!("http://a.test/{session}/{index}");
                    recorder.append(get(index, &url, "text/plain", &url)).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    Arc::into_inner(recorder).unwrap().finish().unwrap();
    let archive = open(directory.path());
    assert!(archive.problems().is_empty());
    assert_eq!(archive.exchanges().len(), 400);
    assert!(archive.scan().files.len() > 1, "files are limited in size");
    for (index, stored) in archive.exchanges().iter().enumerate() {
        assert_eq!(archive.body(index).unwrap(), stored.request.url);
    }
}

#[test]
fn file_of_a_running_recorder_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let first = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
    first.append(get(0, "http://a.test/1", "text/plain", "one")).unwrap();
    let length = fs::metadata(warc(directory.path())).unwrap().len();
    // As if the first were in the middle of a write.
    let mut bytes = fs::read(warc(directory.path())).unwrap();
    bytes.extend_from_slice(&bytes.clone()[..50]);
    fs::write(warc(directory.path()), &bytes).unwrap();
    let second = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
    assert!(second.recovered().is_empty());
    assert_eq!(fs::metadata(warc(directory.path())).unwrap().len(), length + 50);
}

#[test]
fn index_is_sorted_and_rebuilt_when_it_is_stale() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), site());
    assert!(!index::is_stale(directory.path()).unwrap());
    let path = directory.path().join("indexes/index.cdxj");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.is_sorted() && lines.len() == site().len() - 1, "all but the one that failed:\n{text}");
    let graphql: Vec<_> = lines.iter().filter(|line| line.contains("__wb_method=post")).collect();
    assert_eq!(graphql.len(), 3, "{text}");
    assert!(
        graphql[1]
            .starts_with("test,site)/graphql?__wb_method=post&id=1&operationname=cart 20260102030405 {"),
        "{}",
        graphql[1]
    );
    fs::remove_file(&path).unwrap();
    assert!(index::is_stale(directory.path()).unwrap());
    index::rebuild(directory.path()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::File::open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert!(index::is_stale(directory.path()).unwrap());
}

#[test]
fn request_without_absolute_url_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = Recorder::open(directory.path(), RecorderOptions::default()).unwrap();
    for url in ["/relative", "data:text/plain,x", ""] {
        let error = recorder.append(get(0, url, "text/plain", "")).unwrap_err().to_string();
        assert!(error.contains("an absolute URL is expected"), "{url}: {error}");
    }
}
