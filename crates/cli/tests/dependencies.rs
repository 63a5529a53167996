//! Checks our dependencies against deny.toml without tools or network: licences, sources, bans, and checksums in every
//! lock file. `make audit` checks more, with databases that are not always reachable.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{collections::BTreeSet, path::PathBuf, process::Command};

use serde_json::Value;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the quoted strings between `start` and a closing bracket on its own line.
fn quoted_items(text: &str, start: &str) -> Vec<String> {
    let list = text.split_once(start).unwrap_or_else(|| panic!("deny.toml has no {start}")).1;
    let list = list.split_once("\n]").unwrap().0;
    list.lines().filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

struct Rules {
    licences: BTreeSet<String>,
    /// Pairs of a licence and the only crate that may have it.
    exceptions: Vec<(String, String)>,
    banned: Vec<String>,
}

impl Rules {
    fn read() -> Self {
        let text = read("deny.toml");
        let exceptions = text.split_once("\nexceptions = [").unwrap().1.split_once("\n]").unwrap().0;
        let exceptions = exceptions.lines().filter(|line| line.contains("crate = "));
        let part = |line: &str, number: usize| line.split('"').nth(number).unwrap().to_owned();
        Self {
            licences: quoted_items(&text, "\nallow = [").into_iter().collect(),
            exceptions: exceptions.map(|line| (part(line, 3), part(line, 1))).collect(),
            banned: quoted_items(&text, "\ndeny = ["),
        }
    }

    fn allows(&self, licence: &str, name: &str) -> bool {
        self.licences.contains(licence)
            || self.exceptions.iter().any(|(allowed, one)| allowed == licence && one == name)
    }

    /// Returns whether a licence expression is satisfied. `AND` binds closer than `OR`; `/` is an old form of `OR`.
    fn is_satisfied(&self, expression: &str, name: &str) -> bool {
        let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let tokens: Vec<&str> = spaced.split_whitespace().collect();
        let (satisfied, used) = self.parse_or(&tokens, name);
        assert_eq!(used, tokens.len(), "{name}: cannot parse {expression}");
        satisfied
    }

    fn parse_or(&self, tokens: &[&str], name: &str) -> (bool, usize) {
        let (mut satisfied, mut position) = self.parse_and(tokens, name);
        while tokens.get(position) == Some(&"OR") {
            let (other, used) = self.parse_and(&tokens[position + 1..], name);
            (satisfied, position) = (satisfied || other, position + 1 + used);
        }
        (satisfied, position)
    }

    fn parse_and(&self, tokens: &[&str], name: &str) -> (bool, usize) {
        let (mut satisfied, mut position) = self.parse_term(tokens, name);
        while tokens.get(position) == Some(&"AND") {
            let (other, used) = self.parse_term(&tokens[position + 1..], name);
            (satisfied, position) = (satisfied && other, position + 1 + used);
        }
        (satisfied, position)
    }

    fn parse_term(&self, tokens: &[&str], name: &str) -> (bool, usize) {
        match tokens {
            ["(", rest @ ..] => {
                let (satisfied, used) = self.parse_or(rest, name);
                assert_eq!(rest.get(used), Some(&")"), "{name}: missing closing bracket");
                (satisfied, used + 2)
            }
            [licence, "WITH", exception, ..] => {
                (self.allows(&format!("{licence} WITH {exception}"), name) || self.allows(licence, name), 3)
            }
            [licence, ..] => (self.allows(licence, name), 1),
            [] => (false, 0),
        }
    }
}

/// Returns name and licence of every package that is built here, including those that only tests use.
fn packages() -> Vec<(String, String)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(cargo)
        .args(["tree", "--workspace", "--locked", "--offline", "--prefix=none", "--edges=normal,build,dev"])
        .args(["--no-dedupe", "--format={p}|{l}", "--target", &platform])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: BTreeSet<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let name = |package: &str| package.split(' ').next().unwrap().to_owned();
    lines
        .into_iter()
        .map(|line| line.rsplit_once('|').unwrap())
        // cargo tree marks packages that it does not expand again by (*).
        .map(|(package, licence)| (name(package), licence.trim_end_matches(" (*)").to_owned()))
        .collect()
}

#[test]
fn every_crate_is_allowed() {
    let (rules, packages) = (Rules::read(), packages());
    assert!(packages.len() > 100 && rules.licences.len() > 3 && rules.banned.len() > 3);
    for (name, licence) in &packages {
        assert!(rules.is_satisfied(licence, name), "{name}: {licence:?} is not allowed by deny.toml");
        assert!(!rules.banned.contains(name), "{name} is banned by deny.toml");
    }
}

#[test]
fn spdx_expressions_are_evaluated() {
    let rules = Rules {
        licences: ["MIT".to_owned(), "ISC".to_owned()].into(),
        exceptions: vec![("IJG".into(), "jpeg".into())],
        banned: Vec::new(),
    };
    for (expression, wanted) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 AND MIT", false),
        ("MIT AND ISC", true),
        ("(MIT OR GPL-3.0) AND ISC", true),
        ("(GPL-3.0 OR BSL-1.0) AND ISC", false),
        ("GPL-3.0 OR MIT AND ISC", true),
        ("GPL-2.0 WITH Classpath-exception-2.0", false),
        ("MIT AND IJG", false),
    ] {
        assert_eq!(rules.is_satisfied(expression, "other"), wanted, "{expression}");
    }
    assert!(rules.is_satisfied("MIT AND IJG", "jpeg"));
}

#[test]
fn every_download_has_a_checksum() {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let text = read(lock);
        for package in text.split("[[package]]").skip(1) {
            let fetched = package.contains("\nsource = ");
            let line = |start: &str| package.lines().find(|line| line.starts_with(start)).unwrap_or_default();
            let name = line("name = ");
            assert!(!fetched || line("source = ") == format!("source = \"{REGISTRY}\""), "{lock}: {name}");
            assert_eq!(fetched, line("checksum = ").len() > 64, "{lock}: {name}");
            let is_ours = name.contains("\"webgym-") || name == "name = \"examples\"";
            assert!(fetched || is_ours, "{lock}: {name} is not ours");
        }
    }
    let pages: Value = serde_json::from_str(&read("crates/web/ui/package-lock.json")).unwrap();
    let rules = Rules::read();
    for (path, package) in pages["packages"].as_object().unwrap().iter().filter(|(path, _)| !path.is_empty())
    {
        let integrity = package["integrity"].as_str().unwrap_or_default();
        assert!(integrity.starts_with("sha512-"), "{path} has no checksum");
        let licence = package["license"].as_str().unwrap_or_default();
        let tool_only = package["dev"] == true;
        assert!(
            tool_only || rules.is_satisfied(licence, path),
            "{path} is shipped under {licence}, which deny.toml does not allow"
        );
        let from = package["resolved"].as_str().unwrap_or("https://registry.npmjs.org/");
        assert!(from.starts_with("https://registry.npmjs.org/"), "{path} comes from {from}");
    }
}
