//! Pickles that run code, exhaust memory or take very long are refused quickly, by name and with little memory.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]

#[path = "support/counting_heap.rs"]
mod counting_heap;
#[path = "support/sample.rs"]
mod sample;
#[path = "support/uncompressed.rs"]
mod uncompressed;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use store::durable::Existing;
use store::pt::{PtError, PtFile, PtWriter};
use store::unpickle::{UnpickleLimits, load};

#[global_allocator]
static HEAP: counting_heap::CountingHeap = counting_heap::CountingHeap;

const MEGABYTE: usize = 1 << 20;

fn text(value: &str) -> Vec<u8> {
    [&[b'X'][..], &(value.len() as u32).to_le_bytes(), value.as_bytes()].concat()
}

fn pickle(parts: &[&[u8]]) -> Vec<u8> {
    [&[0x80, 2][..], &parts.concat()].concat()
}

fn call(module: &str, name: &str, argument: &str) -> Vec<u8> {
    let global = format!("c{module}\n{name}\n");
    pickle(&[global.as_bytes(), &text(argument), b"\x85R."])
}

/// Writes a pickle as a `.pt` file, as PyTorch does.
fn write_pt(path: &Path, pickle: &[u8]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("archive/data.pkl", options).unwrap();
    zip.write_all(pickle).unwrap();
    zip.finish().unwrap();
}

/// Reads a pickle as a value and as a file, and returns the first error.
fn first_error(pickle: &[u8]) -> Option<String> {
    let as_value = load(pickle, UnpickleLimits::default()).err().map(|error| error.to_string());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pt");
    write_pt(&path, pickle);
    let as_file = read_file(&path).err().map(|error| error.to_string());
    as_value.or(as_file)
}

fn read_file(path: &Path) -> Result<usize, PtError> {
    let mut count = 0;
    for trajectory in PtFile::open(path)?.trajectories()? {
        trajectory?;
        count += 1;
    }
    Ok(count)
}

/// Pickles that refer to code or use refused instructions, with a part of the expected error.
fn refused_pickles() -> Vec<(Vec<u8>, &'static str)> {
    let stack_global = |module: &str, name: &str| {
        pickle(&[b"\x80\x04", &text(module), &text(name), b"\x93", &text("id"), b"\x85R."])
    };
    vec![
        (call("os", "system", "id"), "os.system"),
        (call("posix", "system", "id"), "posix.system"),
        (call("builtins", "eval", "1"), "builtins.eval"),
        (call("__builtin__", "exec", "1"), "__builtin__.exec"),
        (call("builtins", "getattr", "1"), "builtins.getattr"),
        (call("subprocess", "Popen", "id"), "subprocess.Popen"),
        (call("webgym.data.components", "os.system", "id"), "webgym.data.components.os.system"),
        (call("webgym.data", "Task", "id"), "webgym.data.Task"),
        (call("numpy.core.multiarray", "scalar", "x"), "numpy.core.multiarray.scalar"),
        (call("torch._utils", "_rebuild_tensor_v2", "x"), "torch._utils._rebuild_tensor_v2"),
        (stack_global("os", "system"), "os.system"),
        (stack_global("nt", "system"), "nt.system"),
        (pickle(&[b"(", &text("id"), b"ios\nsystem\n."]), "os.system"),
        (pickle(&[b"(cos\nsystem\n", &text("id"), b"o."]), "os.system"),
        (pickle(&[b"\x82\x01."]), "extension"),
        (pickle(&[&text("1"), b"Q."]), "stored elsewhere"),
        (pickle(&[b"N2."]), "DUP"),
        (pickle(&[b"S'x'\n."]), "protocols 0 and 1"),
        (pickle(&[b"\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00a."]), "bytearray"),
        // An allowed class must not be called with arguments or used as a value.
        (call("webgym.data.components", "Task", "id"), "arguments"),
        (pickle(&[b"cwebgym.data.components\nTask\n."]), "expected a value, found a class"),
        (pickle(&[b"]cwebgym.data.components\nTask\na."]), "expected a value, found a class"),
    ]
}

fn nested_lists(depth: usize) -> Vec<u8> {
    pickle(&[&b"]".repeat(depth), &b"a".repeat(depth - 1), b"."])
}

/// Lists that each contain the previous list twice: a few hundred bytes that expand to 2^levels values.
fn doubling_lists(levels: u8) -> Vec<u8> {
    let mut body = b"](K\x01K\x01eq\x00".to_vec();
    for level in 0..levels {
        body.extend_from_slice(&[b'0', b']', b'(', b'h', level, b'h', level, b'e', b'q', level + 1]);
    }
    pickle(&[&body, b"."])
}

/// One large trajectory, repeated many times through the memo.
fn repeated_trajectories() -> Vec<u8> {
    let step = [b"}(".to_vec(), text("x"), text(&"y".repeat(MEGABYTE)), b"u".to_vec()].concat();
    let repeats = b"h\x01a".repeat(100_000);
    pickle(&[b"}(", &text("trajectories"), b"]](", &step, b"eq\x01a", &repeats, b"u."])
}

/// Ten thousand small trajectories that share a task of one megabyte.
fn shared_task() -> Vec<u8> {
    let class = |name: &str| format!("cwebgym.data.components\n{name}\n)").into_bytes();
    let task = [
        class("Task"),
        b"\x81q\x01}(".to_vec(),
        text("task_name"),
        text(&"y".repeat(MEGABYTE)),
        b"ub".to_vec(),
    ];
    let trajectory = |task: &[u8]| {
        [
            b"]}(".to_vec(),
            text("observation"),
            class("Observation"),
            b"\x81}(".to_vec(),
            text("task"),
            task.to_vec(),
            b"ubua".to_vec(),
        ]
        .concat()
    };
    let mut body = [trajectory(&task.concat()), b"a".to_vec()].concat();
    for _ in 0..10_000 {
        body.extend(trajectory(b"h\x01"));
        body.push(b'a');
    }
    pickle(&[b"}(", &text("trajectories"), b"]", &body, b"u."])
}

/// Pickles that are malformed or expand to too much.
fn malformed_pickles() -> Vec<(&'static str, Vec<u8>)> {
    let long = |code: u8, length: u64| pickle(&[&[code], &length.to_le_bytes(), b"abc."]);
    let short = |code: u8| pickle(&[&[code], &u32::MAX.to_le_bytes(), b"abc."]);
    let set_of_memo = [
        b"(".to_vec(),
        b"N".repeat(100_000),
        b"tq\x00](".to_vec(),
        b"cbuiltins\nset\nh\x00\x85R".repeat(20_000),
        b"e\x86.".to_vec(),
    ];
    let bytes_of_memo = [
        text(&"y".repeat(MEGABYTE)),
        b"q\x00](".to_vec(),
        [&b"c_codecs\nencode\nh\x00"[..], &text("latin1"), b"\x86R"].concat().repeat(20_000),
        b"e\x86.".to_vec(),
    ];
    vec![
        ("nested lists", nested_lists(MEGABYTE)),
        ("nested tuples", pickle(&[b"N", &b"\x85".repeat(MEGABYTE), b"."])),
        ("marks", pickle(&[&b"(".repeat(2 * MEGABYTE), b"."])),
        ("a tall stack", pickle(&[&b"N".repeat(2 * MEGABYTE), b"."])),
        ("doubling lists", doubling_lists(100)),
        ("repeated trajectories", repeated_trajectories()),
        ("a shared task", shared_task()),
        ("sets of one tuple", pickle(&[&set_of_memo.concat()])),
        ("bytes of one text", pickle(&[&bytes_of_memo.concat()])),
        ("a list that contains itself", pickle(&[b"]q\x00h\x00a."])),
        ("a dict that contains itself", pickle(&[b"}q\x00", &text("k"), b"h\x00s."])),
        ("a change to a value in use", pickle(&[b"]q\x00\x85h\x00Na."])),
        ("huge text", long(0x8d, u64::MAX)),
        ("huge bytes", long(0x8e, 1 << 40)),
        ("long text", short(b'X')),
        ("long bytes", short(b'B')),
        ("long integer", short(0x8b)),
        ("an unterminated name", pickle(&[b"c", &b"a".repeat(MEGABYTE)])),
        ("an unknown protocol", vec![0x80, 9, b'N', b'.']),
        ("an unknown instruction", pickle(&[b"\xff."])),
        ("an empty file", Vec::new()),
        ("pops from an empty stack", pickle(&[b"0000."])),
        ("a read of an empty memo slot", pickle(&[b"h\x07."])),
        ("a dict key without a value", pickle(&[b"(Nd."])),
        ("state of a number", pickle(&[b"K\x01}b."])),
        ("two values at the end", pickle(&[b"NN."])),
    ]
}

/// Returns the CPU time of this thread: on a busy machine, the wall clock says little.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

#[test]
fn hostile_pickles_are_refused_cheaply() {
    for (pickle, name) in refused_pickles() {
        let error = first_error(&pickle).unwrap_or_default();
        assert!(error.contains(name), "{name}: {error:?}");
    }
    for (name, pickle) in malformed_pickles() {
        let before = cpu_time();
        let (error, peak) = counting_heap::peak_of(|| first_error(&pickle));
        assert!(error.is_some(), "{name} was accepted");
        let time = cpu_time().saturating_sub(before);
        // Generous for debug code; without limits, these take minutes and gigabytes.
        assert!(time < Duration::from_secs(10), "{name} took {time:?}");
        assert!(peak < 128 * MEGABYTE + 40 * pickle.len(), "{name} took {} MiB", peak / MEGABYTE);
    }
    truncated_and_modified_files_are_errors();
    large_foreign_file_is_read_in_little_memory();
}

fn truncated_and_modified_files_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pt");
    let mut writer = PtWriter::create(&path).unwrap();
    for index in 0..3 {
        writer.push(&sample::trajectory(index, 3)).unwrap();
    }
    writer.finish(&store::RunMetadata::default(), Existing::Refuse).unwrap();
    let complete = std::fs::read(&path).unwrap();
    for length in (0..complete.len()).step_by(61) {
        std::fs::write(&path, &complete[..length]).unwrap();
        assert!(read_file(&path).is_err(), "truncated to {length}");
    }
    for position in (100..complete.len() / 2).step_by(61) {
        let mut modified = complete.clone();
        modified[position] ^= 0x10;
        std::fs::write(&path, &modified).unwrap();
        assert!(read_file(&path).is_err(), "modified at {position}");
    }
    // Without compression, a change inside a string is detected only by the checksum.
    std::fs::write(&path, &complete).unwrap();
    uncompressed::uncompress(&path);
    let complete = std::fs::read(&path).unwrap();
    let position = complete.windows(7).position(|bytes| bytes == b"Suche, ").unwrap();
    let mut modified = complete.clone();
    modified[position] = b'T';
    std::fs::write(&path, &modified).unwrap();
    let error = read_file(&path).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

/// Files of the Python system store every value in the memo; only values that are read again may stay in memory.
fn large_foreign_file_is_read_in_little_memory() {
    let filler = text(&"y".repeat(100_000));
    let mut body = Vec::new();
    for slot in 0..1000_u32 {
        let put = |offset: u32| [&b"r"[..], &(slot * 4 + offset).to_le_bytes()].concat();
        body.extend([&b"]"[..], &put(0), b"}", &put(1), &text("note"), &filler, &put(2), b"sa"].concat());
    }
    let content = pickle(&[b"}", &text("trajectories"), b"](", &body, b"es."]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pt");
    write_pt(&path, &content);
    let (count, peak) = counting_heap::peak_of(|| read_file(&path).unwrap());
    assert_eq!(count, 1000);
    assert!(peak < 4 * MEGABYTE, "reading {} MiB took {} MiB", content.len() / MEGABYTE, peak / MEGABYTE);
}
