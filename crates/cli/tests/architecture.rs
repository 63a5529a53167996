//! Pins which room may name which: the table of ARCHITECTURE.md, held against `cargo metadata`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

/// Room → the rooms it may name outside its tests.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("proto", &[]),
    ("cdp", &[]),
    ("browser", &["cdp", "proto"]),
    ("ground", &[]),
    ("farm", &["browser", "ground", "proto"]),
    ("store", &["proto"]),
    ("rollout", &["ground", "proto", "store"]),
    ("practice", &["proto"]),
    ("baseline", &["proto"]),
    ("web", &["proto", "rollout", "store"]),
    ("bench", &["cdp", "practice", "proto", "rollout"]),
    ("cli", &["baseline", "bench", "browser", "farm", "practice", "proto", "rollout", "store", "web"]),
    ("testkit", &["proto"]),
];

fn rooms() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let room = |name: &serde_json::Value| {
        name.as_str().and_then(|name| name.strip_prefix("webgym-")).map(str::to_owned)
    };
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .filter_map(|package| {
            let named = package["dependencies"].as_array()?.iter().filter(|one| one["kind"] != "dev");
            Some((room(&package["name"])?, named.filter_map(|one| room(&one["name"])).collect()))
        })
        .collect()
}

#[test]
fn no_room_names_a_room_it_may_not() {
    let rooms = rooms();
    assert!(rooms.len() >= 5, "{rooms:?}");
    for (room, names) in &rooms {
        let (_, allowed) = MAY_NAME
            .iter()
            .find(|(name, _)| name == room)
            .unwrap_or_else(|| panic!("{room} is not in the table"));
        for name in names {
            assert!(allowed.contains(&name.as_str()), "{room} must not name {name}");
        }
    }
}

#[test]
fn the_two_sides_of_the_wire_never_meet() {
    let rooms = rooms();
    assert!(!rooms["farm"].contains("rollout"));
    if let Some(rollout) = rooms.get("rollout") {
        assert!(!rollout.contains("farm") && !rollout.contains("browser"));
    }
}

/// Clocks of machines differ. Entries of the registry run out by Redis' clock, leases by how long a node has waited: neither
/// may ever look at the time of day.
#[test]
fn the_farm_never_asks_for_the_time_of_day() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../farm/src"))];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for clock in ["SystemTime", "UNIX_EPOCH", "jiff", "chrono", "'TIME'"] {
                    assert!(!text.contains(clock), "{} names {clock}", path.display());
                }
                read += 1;
            }
        }
    }
    assert!(read > 30, "only {read} files were read");
}
