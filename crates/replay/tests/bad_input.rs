//! Damaged and malicious files: a message that names file and offset, and nothing else happens.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use replay::{
    Archive, ArchiveError, ArchiveOptions, RecorderOptions,
    warc::{Block, Limits, WarcReader},
};
use support::{open, record, site, warc};
use zip::{ZipWriter, write::SimpleFileOptions};

fn member(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn text_record(id: &str, headers: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:{id}>\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
         WARC-Target-URI: http://a.test/{id}\r\nContent-Type: application/http; msgtype=response\r\n{headers}\
         Content-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// An archive with one file of these members.
fn archive_of(members: &[Vec<u8>]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("archive")).unwrap();
    let path = directory.path().join("archive/a.warc.gz");
    fs::write(&path, members.concat()).unwrap();
    (directory, path)
}

const HTTP: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello";

/// Returns the messages of `check`, which must name the file and this offset.
fn problems_at(directory: &Path, file: &Path, offset: usize) -> String {
    let report = replay::check(directory).unwrap();
    assert!(!report.is_intact());
    let text = report.problems.join("\n");
    assert!(text.contains(&format!("{}, offset {offset}: ", file.display())), "{text}");
    text
}

#[test]
fn truncated_file_is_reported_with_the_offset_of_the_last_record() {
    let first = member(&text_record("1", "", HTTP));
    let second = member(&text_record("2", "", HTTP));
    for cut in [1, 5, 9, second.len() / 2, second.len() - 8, second.len() - 1] {
        let (directory, path) = archive_of(&[first.clone(), second[..cut].to_vec()]);
        let text = problems_at(directory.path(), &path, first.len());
        assert!(text.contains("the file ends inside it"), "cut at {cut}: {text}");
        assert_eq!(open(directory.path()).exchanges().len(), 1, "cut at {cut}");
    }
}

#[test]
fn wrong_digests_and_checksums_are_reported() {
    let good = member(&text_record("1", "", HTTP));
    for (headers, which) in [
        ("WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n", "the payload digest is sha1:"),
        ("WARC-Block-Digest: sha256:00\r\n", "the block digest is sha256:"),
    ] {
        let (directory, path) = archive_of(&[good.clone(), member(&text_record("2", headers, HTTP))]);
        let text = problems_at(directory.path(), &path, good.len());
        assert!(text.contains(which), "{text}");
        assert_eq!(open(directory.path()).exchanges().len(), 1, "a wrong record is not used");
    }
    let mut damaged = member(&text_record("2", "", HTTP));
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    let (directory, path) = archive_of(&[good.clone(), damaged]);
    problems_at(directory.path(), &path, good.len());
}

#[test]
fn body_that_changed_after_opening_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path(), site());
    let archive = open(directory.path());
    let stored = &archive.exchanges()[1];
    let mut bytes = fs::read(warc(directory.path())).unwrap();
    let middle = (stored.offset + stored.length / 2) as usize;
    bytes[middle] ^= 0x55;
    fs::write(warc(directory.path()), bytes).unwrap();
    let error = archive.body(1).unwrap_err().to_string();
    assert!(error.contains(&format!("offset {}", stored.offset)), "{error}");
}

#[test]
fn record_above_the_limit_is_checked_but_not_kept() {
    let body = [HTTP, &vec![b'x'; 100_000]].concat();
    let big = member(&text_record("big", "", &body));
    let small = member(&text_record("small", "", HTTP));
    let (directory, path) = archive_of(&[big, small]);
    let limits = Limits { max_block: 10_000, ..Limits::default() };
    let records: Vec<_> = WarcReader::open(&path, limits).unwrap().map(Result::unwrap).collect();
    assert_eq!(records[0].block, Block::TooLarge(body.len() as u64));
    assert!(matches!(records[1].block, Block::Complete(_)));
    let archive =
        Archive::open(directory.path(), ArchiveOptions { limits, ..ArchiveOptions::default() }).unwrap();
    let text = archive.problems()[0].to_string();
    assert!(text.contains("offset 0: the record has") && text.contains("the limit of 10000"), "{text}");
    assert_eq!(archive.exchanges().len(), 1);
}

#[test]
fn endless_or_lying_records_are_refused() {
    let endless = member(&[b"WARC/1.1\r\nX: ".as_slice(), &vec![b'a'; 3 << 20]].concat());
    let mut lying = text_record("1", "", HTTP);
    lying.extend_from_slice(b"more data after the record");
    let negative = b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: -1\r\n\r\n".to_vec();
    for (bytes, expected) in [
        (endless, "headers are longer than"),
        (member(&lying), "more data than the Content-Length says"),
        (member(&negative), "Content-Length is \"-1\""),
        (member(b"hello\r\n\r\n"), "it starts with \"hello\""),
        (member(b""), "it is empty"),
        (b"plain text that is no archive\r\n\r\n".to_vec(), "not a WARC record"),
    ] {
        let (directory, path) = archive_of(&[bytes]);
        let text = problems_at(directory.path(), &path, 0);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn duplicate_ids_and_dangling_revisits_are_reported() {
    let first = member(&text_record("same", "", HTTP));
    let (directory, path) = archive_of(&[first.clone(), first.clone()]);
    let text = problems_at(directory.path(), &path, first.len());
    assert!(text.contains("<urn:same> was already used"), "{text}");
    let revisit =
        String::from_utf8(text_record("2", "WARC-Payload-Digest: sha256:77\r\n", b"HTTP/1.1 200 OK\r\n\r\n"));
    let revisit = revisit.unwrap().replace("WARC-Type: response", "WARC-Type: revisit");
    let (directory, path) = archive_of(&[first.clone(), member(revisit.as_bytes())]);
    let text = problems_at(directory.path(), &path, first.len());
    assert!(text.contains("sha256:77") && text.contains("is not in the archive"), "{text}");
}

#[test]
fn records_without_ids_keep_their_own_bodies() {
    let record = |body: &str| {
        let text = String::from_utf8(text_record("x", "", &[HTTP, body.as_bytes()].concat())).unwrap();
        member(text.replace("WARC-Record-ID: <urn:x>\r\n", "").as_bytes())
    };
    let (directory, _) = archive_of(&[record(" one"), record(" two")]);
    let archive = open(directory.path());
    assert!(archive.problems().is_empty(), "{:?}", archive.problems());
    assert_eq!(
        (archive.body(0).unwrap(), archive.body(1).unwrap()),
        ("hello one".into(), "hello two".into())
    );
}

#[test]
fn headers_that_are_not_utf_8_are_kept() {
    let http = b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9\r\nX-\xff: 1\r\n\r\nbody";
    let (directory, _) = archive_of(&[member(&text_record("1", "", http))]);
    let archive = open(directory.path());
    assert!(archive.problems().is_empty());
    assert_eq!(
        archive.exchanges()[0].response.as_ref().unwrap().headers.get("x-name"),
        Some(b"caf\xe9".as_slice())
    );
    let mut har = Vec::new();
    replay::har::export(&archive, &mut har).unwrap();
    assert!(String::from_utf8(har).unwrap().contains("café"));
}

#[test]
fn body_that_is_no_http_message_is_reported() {
    let (directory, path) = archive_of(&[member(&text_record("1", "", b"no http\r\n\r\n"))]);
    assert!(problems_at(directory.path(), &path, 0).contains("not an HTTP message"));
}

fn wacz_with(name: &str, content: &[u8], method: zip::CompressionMethod) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.wacz");
    let mut zip = ZipWriter::new(File::create(&path).unwrap());
    let options = SimpleFileOptions::default().compression_method(method);
    zip.start_file("datapackage.json", options).unwrap();
    zip.write_all(b"{\"resources\":[]}").unwrap();
    zip.start_file(name, options).unwrap();
    zip.write_all(content).unwrap();
    zip.finish().unwrap();
    (directory, path)
}

fn import_error(path: &Path) -> String {
    let target = path.with_file_name("imported");
    let error = replay::import(path, &target, RecorderOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a.wacz"), "{error}");
    let leftovers = fs::read_dir(&target)
        .map_or(0, |entries| entries.filter(|e| e.as_ref().unwrap().file_name() != "archive").count());
    assert_eq!(leftovers, 0, "temporary files are removed");
    error
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    for name in
        ["../evil.warc.gz", "archive/../../evil.warc.gz", "/tmp/evil.warc.gz", "archive/..\\..\\evil.warc.gz"]
    {
        let (directory, path) = wacz_with(name, b"x", zip::CompressionMethod::Stored);
        let error = import_error(&path);
        assert!(error.contains("leads out of the folder"), "{name}: {error}");
        assert!(!directory.path().join("evil.warc.gz").exists());
    }
}

#[test]
fn zip_bomb_is_refused_before_it_is_unpacked() {
    let (_directory, path) =
        wacz_with("archive/a.warc.gz", &vec![0; 64 << 20], zip::CompressionMethod::Deflated);
    assert!(import_error(&path).contains("zip bomb"));
}

#[test]
fn file_that_does_not_agree_with_its_digest_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    record(&directory.path().join("source"), site());
    let path = directory.path().join("a.wacz");
    replay::wacz::pack(&directory.path().join("source"), &path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let name = b".warc.gz";
    let start = bytes.windows(name.len()).position(|window| window == name).unwrap() + 1000;
    bytes[start] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = import_error(&path);
    assert!(error.contains("digest") || error.contains("checksum"), "{error}");
}

#[test]
fn other_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    for (name, content, expected) in [
        ("a.txt", "x", ".har, .warc, .warc.gz and .wacz can be imported"),
        ("a.har", "{\"log\":", "not a HAR file"),
        ("a.wacz", "PK", "not a WACZ file"),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let error = replay::import(&path, &target, RecorderOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(name), "{error}");
        let _ = fs::remove_dir_all(&target);
    }
    let error = Archive::open(directory.path(), ArchiveOptions::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::File { .. }), "{error}");
    fs::create_dir_all(target.join("x")).unwrap();
    let har = directory.path().join("a.har");
    let error = replay::import(&har, &target, RecorderOptions::default()).unwrap_err().to_string();
    assert!(error.contains("it is not empty"), "{error}");
}
