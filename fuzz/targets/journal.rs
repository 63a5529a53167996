//! Journals that were cut, overwritten and filled with rubbish: no record whose line is whole is lost, nothing else is
//! taken for one, and resuming keeps every byte up to the torn tail.
#![no_main]

use std::{collections::BTreeSet, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use store::{Journal, journal::{JournalReader, read_finished, scan}};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

fn framed(json: &str) -> Vec<u8> {
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes()
}

fn finished(index: u8) -> Vec<u8> {
    let task = format!("{{\"task_name\":\"t\",\"domain\":\"\",\"subdomain\":\"\",\"website\":\"w\",\"difficulty\":1,\"evaluator_reference\":[],\"reference_answer\":null,\"attempt_level\":0,\"task_id\":null,\"max_steps\":1,\"trajectory_index\":{index}}}");
    let summary = format!("{{\"trajectory_index\":{index},\"task_name\":\"t\"}}");
    framed(&format!("{{\"finished\":{{\"summary\":{summary},\"trajectory\":{{\"task\":{task},\"steps\":[],\"metadata\":{{}}}}}}}}"))
}

static RECORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| (0..128).map(finished).collect());

fn header() -> Vec<u8> {
    framed("{\"run\":{\"format\":1,\"split\":\"train\",\"iteration\":0,\"rank\":null,\"seed\":1,\"config_digest\":\"\",\"tasks\":300,\"metadata\":{}}}")
}

/// A journal by instructions: a byte below 128 is a whole record of that index, 128 the header, 129 what follows up to
/// the next 129 as it is, everything else is cut off so far from the end.
fn build(instructions: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = instructions;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            0..128 => bytes.extend(&RECORDS[usize::from(*first)]),
            128 => bytes.extend(header()),
            129 => {
                let end = rest.iter().position(|byte| *byte == 129).unwrap_or(rest.len());
                bytes.extend(&rest[..end]);
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            cut => bytes.truncate(bytes.len().saturating_sub(usize::from(cut - 129))),
        }
    }
    bytes
}

fuzz_target!(|instructions: &[u8]| {
    let path = FOLDER.path().join("it.checkpoint");
    let bytes = build(instructions);
    std::fs::write(&path, &bytes).expect("a file");
    let whole: BTreeSet<i64> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| RECORDS.iter().position(|record| record == line))
        .map(|index| index as i64)
        .collect();
    let found = scan(&path).expect("a file that is there can be looked through");
    assert_eq!(found.file_length, bytes.len() as u64);
    assert!(found.valid_length <= found.file_length);
    let indices: BTreeSet<i64> = found.finished.keys().copied().collect();
    assert!(whole.is_subset(&indices), "lost: {:?}", whole.difference(&indices));
    let mut reader = JournalReader::open(&path).expect("it is there");
    for (index, located) in &found.finished {
        let trajectory = read_finished(&mut reader, located);
        if whole.contains(index) {
            assert_eq!(trajectory.expect("a whole record is read").task.trajectory_index, *index);
        }
    }
    drop(reader);
    let Ok((journal, recovered)) = Journal::resume(&path) else { return };
    assert_eq!(recovered.finished, indices);
    journal.close_blocking().expect("it closes");
    let after = std::fs::read(&path).expect("it is there");
    assert_eq!(after, &bytes[..found.valid_length as usize], "only the torn tail is cut");
});
