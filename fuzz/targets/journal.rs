//! Truncated and damaged journals: every intact record is found, nothing else is taken for a record, and resuming
//! removes only the incomplete end.
#![no_main]

use std::{collections::BTreeSet, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use store::{Journal, journal::{JournalReader, read_finished, scan}};

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("create a folder"));

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

/// Builds a journal from instructions: a byte below 128 is a record with that index, 128 is the header, 129 starts raw
/// bytes up to the next 129, and a larger byte truncates the journal by its distance from 129.
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
            byte => bytes.truncate(bytes.len().saturating_sub(usize::from(byte - 129))),
        }
    }
    bytes
}

fuzz_target!(|instructions: &[u8]| {
    let path = FOLDER.path().join("input.checkpoint");
    let bytes = build(instructions);
    std::fs::write(&path, &bytes).expect("write a file");
    let intact: BTreeSet<i64> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| RECORDS.iter().position(|record| record == line))
        .map(|index| index as i64)
        .collect();
    let found = scan(&path).expect("an existing file can be scanned");
    assert_eq!(found.file_length, bytes.len() as u64);
    assert!(found.valid_length <= found.file_length);
    let indices: BTreeSet<i64> = found.finished.keys().copied().collect();
    assert!(intact.is_subset(&indices), "lost: {:?}", intact.difference(&indices));
    let mut reader = JournalReader::open(&path).expect("the file exists");
    for (index, located) in &found.finished {
        let trajectory = read_finished(&mut reader, located);
        if intact.contains(index) {
            assert_eq!(trajectory.expect("an intact record can be read").task.trajectory_index, *index);
        }
    }
    drop(reader);
    let Ok((journal, recovered)) = Journal::resume(&path) else { return };
    assert_eq!(recovered.finished, indices);
    journal.close_blocking().expect("the journal closes");
    let after = std::fs::read(&path).expect("the file exists");
    assert_eq!(after, &bytes[..found.valid_length as usize], "only the incomplete end is removed");
});
