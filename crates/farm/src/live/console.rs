//! The latest console messages of a page, numbered, so that each viewer gets those that it has not seen.

use std::collections::VecDeque;

use browser::ConsoleEntry;

use super::MAX_CONSOLE_ENTRIES;

#[derive(Default)]
pub(crate) struct ConsoleBuffer {
    entries: VecDeque<ConsoleEntry>,
    /// The number of the next entry.
    next: u64,
}

/// The messages after a certain one.
pub(crate) struct NewEntries {
    pub(crate) entries: Vec<ConsoleEntry>,
    /// Messages that were dropped before these.
    pub(crate) missed: u64,
    /// The number to ask for next time.
    pub(crate) next: u64,
}

impl ConsoleBuffer {
    pub(crate) fn push(&mut self, entry: ConsoleEntry) {
        if self.entries.len() == MAX_CONSOLE_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.next += 1;
    }

    /// Returns the messages from number `from` on; `None` if there are none.
    pub(crate) fn since(&self, from: u64) -> Option<NewEntries> {
        if from >= self.next {
            return None;
        }
        let first = self.next - self.entries.len() as u64;
        let missed = first.saturating_sub(from);
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let entries = self.entries.iter().skip(skip).cloned().collect();
        Some(NewEntries { entries, missed, next: self.next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> ConsoleEntry {
        ConsoleEntry { level: "info", text: text.into(), url: String::new(), line: 0, time: 0.0 }
    }

    #[test]
    fn viewer_gets_each_message_once_and_learns_what_it_missed() {
        let mut buffer = ConsoleBuffer::default();
        assert!(buffer.since(0).is_none());
        buffer.push(entry("a"));
        buffer.push(entry("b"));
        let new = buffer.since(1).unwrap();
        assert_eq!((new.entries.len(), new.missed, new.next), (1, 0, 2));
        assert!(buffer.since(2).is_none());
        for number in 0..=MAX_CONSOLE_ENTRIES {
            buffer.push(entry(&number.to_string()));
        }
        let new = buffer.since(2).unwrap();
        assert_eq!((new.entries.len(), new.missed), (MAX_CONSOLE_ENTRIES, 1));
        assert_eq!(new.entries[0].text, "1");
    }
}
