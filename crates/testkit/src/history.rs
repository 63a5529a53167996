//! The farm's books, gathered from every process and checked: no slot is leased twice at once, no lease goes to two
//! clients, none is left over. Nodes and masters write them with `WEBGYM_LOG=…,farm::ledger=debug`.

use std::collections::{HashMap, HashSet};

/// What processes must be told so that their books can be read here.
pub const LEDGER_LOG: (&str, &str) = ("WEBGYM_LOG", "warn,webgym=info,farm=info,farm::ledger=debug");

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A node leased a slot under this id (`uuid:slot`).
    Leased(String),
    /// A node took it back.
    Ended(String),
    /// A master told a client, which asked under this key (`-`: none).
    Given { id: String, key: String },
    /// The process ended, and every lease with it.
    ProcessEnded,
}

impl Entry {
    /// What a line of a log says, if it is one of the books'.
    pub fn read(line: &str) -> Option<Self> {
        let said = line.split_once("DEBUG ")?.1;
        let said = said.rsplit_once("}: ").map_or(said, |(_, said)| said);
        let mut words = said.split_ascii_whitespace();
        let (verb, id) = (words.next()?, words.next()?.to_owned());
        if !id.contains(':') {
            return None;
        }
        match verb {
            "leased" => Some(Self::Leased(id)),
            "ended" => Some(Self::Ended(id)),
            "given" => {
                let key = said.split_once(" under ")?.1.trim().to_owned();
                Some(Self::Given { id, key })
            }
            _ => None,
        }
    }
}

/// The books of all processes. The order within a process is that in which things happened there.
#[derive(Clone, Debug, Default)]
pub struct History {
    books: Vec<(String, Vec<Entry>)>,
}

impl History {
    pub fn add(&mut self, process: &str, entries: Vec<Entry>) {
        self.books.push((process.to_owned(), entries));
    }

    pub fn leases(&self) -> usize {
        self.entries().filter(|(_, entry)| matches!(entry, Entry::Leased(_))).count()
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.books.iter().flat_map(|(process, entries)| entries.iter().map(|entry| (process.as_str(), entry)))
    }

    /// Everything that must not have happened.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut ever: HashSet<&str> = HashSet::new();
        for (process, entries) in &self.books {
            check_process(process, entries, &mut ever, &mut wrong);
        }
        let mut keys: HashMap<&str, &str> = HashMap::new();
        for (process, entry) in self.entries() {
            let Entry::Given { id, key } = entry else { continue };
            if !ever.contains(id.as_str()) {
                wrong.push(format!("{process} gave {id}, which no node has leased"));
            }
            match keys.insert(id, key) {
                Some(before) if before != key || key == "-" => {
                    wrong.push(format!("{process} gave {id} to a second client ({before} and {key})"));
                }
                _ => {}
            }
        }
        wrong
    }
}

fn check_process<'a>(
    process: &str,
    entries: &'a [Entry],
    ever: &mut HashSet<&'a str>,
    wrong: &mut Vec<String>,
) {
    let mut held: HashMap<&str, &str> = HashMap::new();
    for entry in entries {
        match entry {
            Entry::Leased(id) => {
                if !ever.insert(id) {
                    wrong.push(format!("{process} leased {id} once more"));
                }
                if let Some(other) = held.insert(slot(id), id) {
                    wrong.push(format!("{process} leased {id} while {other} held the slot"));
                }
            }
            Entry::Ended(id) => match held.get(slot(id)) {
                Some(holder) if *holder == id => drop(held.remove(slot(id))),
                _ => wrong.push(format!("{process} ended {id}, which was not in force")),
            },
            Entry::Given { .. } => {}
            Entry::ProcessEnded => held.clear(),
        }
    }
    wrong.extend(held.values().map(|id| format!("{process} still holds {id}")));
}

fn slot(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(id: &str) -> Entry {
        Entry::Leased(id.into())
    }
    fn ended(id: &str) -> Entry {
        Entry::Ended(id.into())
    }
    fn given(id: &str, key: &str) -> Entry {
        Entry::Given { id: id.into(), key: key.into() }
    }

    fn wrong(node: Vec<Entry>, master: Vec<Entry>) -> String {
        let mut history = History::default();
        history.add("node", node);
        history.add("master", master);
        history.violations().join("; ")
    }

    #[test]
    fn good_books_are_good() {
        let node = vec![
            leased("a:1"),
            leased("b:2"),
            ended("a:1"),
            leased("c:1"),
            Entry::ProcessEnded,
            leased("d:2"),
            ended("d:2"),
        ];
        assert_eq!(wrong(node, vec![given("a:1", "k"), given("a:1", "k"), given("b:2", "-")]), "");
    }

    #[test]
    fn bad_books_are_found_out() {
        let cases = [
            (vec![leased("a:1"), leased("b:1"), ended("b:1")], vec![], "leased b:1 while a:1 held the slot"),
            (vec![leased("a:1"), ended("a:1"), leased("a:1"), ended("a:1")], vec![], "leased a:1 once more"),
            (vec![ended("a:1")], vec![], "ended a:1, which was not in force"),
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
            (vec![], vec![given("x:1", "-")], "no node has leased"),
        ];
        for (node, master, words) in cases {
            let said = wrong(node, master);
            assert!(said.contains(words), "{words:?} not in {said:?}");
        }
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let read = |line: &str| Entry::read(line);
        assert_eq!(read("2026-11-15T15:00:00.1Z DEBUG leased a-b:9000"), Some(leased("a-b:9000")));
        assert_eq!(
            read("2026-11-15T15:00:00.1Z DEBUG task{name=\"sweep\"}: ended a:9001 expired"),
            Some(ended("a:9001"))
        );
        let line = "2026-11-15T15:00:00.1Z DEBUG given a:9001 at http://h:1 under some key";
        assert_eq!(read(line), Some(given("a:9001", "some key")));
        for other in ["", "x DEBUG leased nothing", "INFO ready: 1 instances", "DEBUG something:else a b"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
