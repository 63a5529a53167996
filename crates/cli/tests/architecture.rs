//! Compares the crate graph of `cargo metadata` with the table of crates in ARCHITECTURE.md. They must be equal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

/// Crate → the workspace crates that it depends on outside its tests.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn graph_of_workspace() -> Graph {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let short_name = |name: &serde_json::Value| {
        name.as_str().and_then(|name| name.strip_prefix("webgym-")).map(str::to_owned)
    };
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .filter_map(|package| {
            let used = package["dependencies"].as_array()?.iter().filter(|used| used["kind"] != "dev");
            Some((short_name(&package["name"])?, used.filter_map(|used| short_name(&used["name"])).collect()))
        })
        .collect()
}

/// Reads the rows ``| `crate` | purpose | dependencies |``; "–" stands for none.
fn graph_of_table(markdown: &str) -> Graph {
    let rows = markdown.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, _purpose, dependencies, ""] = cells[..] else { return None };
        let names = dependencies.split(',').map(str::trim).filter(|name| *name != "–");
        Some((name.trim_end_matches('`').to_owned(), names.map(str::to_owned).collect()))
    })
    .collect()
}

#[test]
fn crate_graph_equals_the_table_of_architecture_md() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let table = graph_of_table(&std::fs::read_to_string(path).expect("ARCHITECTURE.md is readable"));
    let workspace = graph_of_workspace();
    assert!(workspace.len() >= 5, "{workspace:?}");
    let names = |graph: &Graph| graph.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&table), names(&workspace), "crates in the table (left) and in the workspace (right)");
    for (name, dependencies) in &workspace {
        assert_eq!(&table[name], dependencies, "{name}: table (left) and Cargo.toml (right)");
    }
}

#[test]
fn farm_and_rollout_never_depend_on_each_other() {
    let graph = graph_of_workspace();
    assert!(!graph["farm"].contains("rollout") && !graph["rollout"].contains("farm"), "{graph:?}");
}
