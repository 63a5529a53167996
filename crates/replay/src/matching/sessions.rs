//! Which recordings a session prefers: its own, then those of the same task, then all others.

use std::collections::HashMap;

use crate::scan::StoredExchange;

/// The sessions of an archive, and the session of each recording.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    names: Vec<String>,
    /// For each recording: a position in `names`.
    of: Vec<Option<u32>>,
}

/// How far a session is from the one that replays. Smaller is nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Same,
    /// Another attempt: the names are equal up to the last `#`.
    SameTask,
    Other,
}

/// The distance of each session of an archive.
#[derive(Clone, Debug, Default)]
pub(super) struct Preference(Vec<Distance>);

impl Sessions {
    pub(crate) fn collect(exchanges: &[StoredExchange]) -> Self {
        let mut sessions = Self::default();
        let mut known: HashMap<&str, u32> = HashMap::new();
        for stored in exchanges {
            let position = stored.session.as_deref().map(|name| {
                *known.entry(name).or_insert_with(|| {
                    sessions.names.push(name.to_owned());
                    sessions.names.len() as u32 - 1
                })
            });
            sessions.of.push(position);
        }
        sessions
    }

    pub(super) fn preference(&self, session: &str) -> Preference {
        let distance = |name: &String| {
            if name == session {
                Distance::Same
            } else if task(name) == task(session) {
                Distance::SameTask
            } else {
                Distance::Other
            }
        };
        Preference(self.names.iter().map(distance).collect())
    }

    /// Returns the nearest of several recordings, in their order.
    pub(super) fn nearest(&self, preference: &Preference, recordings: &[u32]) -> Vec<u32> {
        let distance = |index: &u32| {
            let session = self.of.get(*index as usize).copied().flatten();
            session.and_then(|session| preference.0.get(session as usize)).copied().unwrap_or(Distance::Other)
        };
        let nearest = recordings.iter().map(distance).min();
        recordings.iter().copied().filter(|index| Some(distance(index)) == nearest).collect()
    }
}

fn task(session: &str) -> &str {
    session.rsplit_once('#').map_or(session, |(task, _)| task)
}
