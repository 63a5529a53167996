//! Collects the lease audit logs of all farm processes and checks them: no slot is leased twice at the same time, no
//! lease goes to two clients, and none is left over. Nodes and masters write the log with
//! `WEBGYM_LOG=…,farm::audit=debug`.

use std::collections::{HashMap, HashSet};

/// The environment variable that makes a process write its audit log.
pub const AUDIT_LOG_ENV: (&str, &str) = ("WEBGYM_LOG", "warn,webgym=info,farm=info,farm::audit=debug");

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditEntry {
    /// A node leased a slot under this id (`uuid:slot`).
    Leased(String),
    /// A node ended the lease.
    Ended(String),
    /// A master sent the lease to a client that used this idempotency key (`-`: none).
    Given { id: String, key: String },
    /// The process exited, which ends all its leases.
    ProcessEnded,
}

impl AuditEntry {
    /// Parses a log line; returns `None` if it is not an audit entry.
    pub fn parse(line: &str) -> Option<Self> {
        let message = line.split_once("DEBUG ")?.1;
        let message = message.rsplit_once("}: ").map_or(message, |(_, message)| message);
        let mut words = message.split_ascii_whitespace();
        let (verb, id) = (words.next()?, words.next()?.to_owned());
        if !id.contains(':') {
            return None;
        }
        match verb {
            "leased" => Some(Self::Leased(id)),
            "ended" => Some(Self::Ended(id)),
            "given" => {
                let key = message.split_once(" under ")?.1.trim().to_owned();
                Some(Self::Given { id, key })
            }
            _ => None,
        }
    }
}

/// The entries of all processes, in order of time within each process.
#[derive(Clone, Debug, Default)]
pub struct AuditLog {
    processes: Vec<(String, Vec<AuditEntry>)>,
}

impl AuditLog {
    pub fn add(&mut self, process: &str, entries: Vec<AuditEntry>) {
        self.processes.push((process.to_owned(), entries));
    }

    pub fn leases(&self) -> usize {
        self.entries().filter(|(_, entry)| matches!(entry, AuditEntry::Leased(_))).count()
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &AuditEntry)> {
        self.processes
            .iter()
            .flat_map(|(process, entries)| entries.iter().map(|entry| (process.as_str(), entry)))
    }

    /// Returns a description of every violated rule.
    pub fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        let mut leased: HashSet<&str> = HashSet::new();
        for (process, entries) in &self.processes {
            check_process(process, entries, &mut leased, &mut violations);
        }
        let mut keys: HashMap<&str, &str> = HashMap::new();
        for (process, entry) in self.entries() {
            let AuditEntry::Given { id, key } = entry else { continue };
            if !leased.contains(id.as_str()) {
                violations.push(format!("{process} returned {id}, which no node leased"));
            }
            match keys.insert(id, key) {
                Some(before) if before != key || key == "-" => {
                    violations
                        .push(format!("{process} returned {id} to a second client ({before} and {key})"));
                }
                _ => {}
            }
        }
        violations
    }
}

fn check_process<'a>(
    process: &str,
    entries: &'a [AuditEntry],
    leased: &mut HashSet<&'a str>,
    violations: &mut Vec<String>,
) {
    let mut held: HashMap<&str, &str> = HashMap::new();
    for entry in entries {
        match entry {
            AuditEntry::Leased(id) => {
                if !leased.insert(id) {
                    violations.push(format!("{process} leased {id} a second time"));
                }
                if let Some(other) = held.insert(slot(id), id) {
                    violations.push(format!("{process} leased {id} while {other} held the slot"));
                }
            }
            AuditEntry::Ended(id) => match held.get(slot(id)) {
                Some(holder) if *holder == id => drop(held.remove(slot(id))),
                _ => violations.push(format!("{process} ended {id}, which was not leased")),
            },
            AuditEntry::Given { .. } => {}
            AuditEntry::ProcessEnded => held.clear(),
        }
    }
    violations.extend(held.values().map(|id| format!("{process} still holds {id}")));
}

fn slot(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(id: &str) -> AuditEntry {
        AuditEntry::Leased(id.into())
    }
    fn ended(id: &str) -> AuditEntry {
        AuditEntry::Ended(id.into())
    }
    fn given(id: &str, key: &str) -> AuditEntry {
        AuditEntry::Given { id: id.into(), key: key.into() }
    }

    fn violations(node: Vec<AuditEntry>, master: Vec<AuditEntry>) -> String {
        let mut log = AuditLog::default();
        log.add("node", node);
        log.add("master", master);
        log.violations().join("; ")
    }

    #[test]
    fn valid_log_has_no_violations() {
        let node = vec![
            leased("a:1"),
            leased("b:2"),
            ended("a:1"),
            leased("c:1"),
            AuditEntry::ProcessEnded,
            leased("d:2"),
            ended("d:2"),
        ];
        assert_eq!(violations(node, vec![given("a:1", "k"), given("a:1", "k"), given("b:2", "-")]), "");
    }

    #[test]
    fn violations_are_reported() {
        let cases = [
            (vec![leased("a:1"), leased("b:1"), ended("b:1")], vec![], "leased b:1 while a:1 held the slot"),
            (
                vec![leased("a:1"), ended("a:1"), leased("a:1"), ended("a:1")],
                vec![],
                "leased a:1 a second time",
            ),
            (vec![ended("a:1")], vec![], "ended a:1, which was not leased"),
            (vec![leased("a:1")], vec![], "still holds a:1"),
            (
                vec![leased("a:1"), ended("a:1")],
                vec![given("a:1", "k"), given("a:1", "l")],
                "to a second client",
            ),
            (
                vec![leased("a:1"), ended("a:1")],
                vec![given("a:1", "-"), given("a:1", "-")],
                "to a second client",
            ),
            (vec![], vec![given("x:1", "-")], "no node leased"),
        ];
        for (node, master, expected) in cases {
            let found = violations(node, master);
            assert!(found.contains(expected), "{expected:?} not in {found:?}");
        }
    }

    #[test]
    fn log_lines_are_parsed() {
        let parse = |line: &str| AuditEntry::parse(line);
        assert_eq!(parse("2026-11-15T15:00:00.1Z DEBUG leased a-b:9000"), Some(leased("a-b:9000")));
        assert_eq!(
            parse("2026-11-15T15:00:00.1Z DEBUG task{name=\"sweep\"}: ended a:9001 expired"),
            Some(ended("a:9001"))
        );
        let line = "2026-11-15T15:00:00.1Z DEBUG given a:9001 at http://h:1 under some key";
        assert_eq!(parse(line), Some(given("a:9001", "some key")));
        for other in ["", "x DEBUG leased nothing", "INFO ready: 1 instances", "DEBUG something:else a b"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
