//! How two archives differ: requests that only one has, and responses that changed.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use serde::Serialize;

use crate::{Archive, ArchiveError, MatchRules, encoding, matching::request_label, scan::StoredExchange};

/// Lines of each side that are shown for a changed text.
const MAX_LINES: usize = 3;
const MAX_LINE: usize = 100;

/// The differences between two archives.
#[derive(Debug, Default, Serialize)]
pub struct Differences {
    pub only_left: Vec<String>,
    pub only_right: Vec<String>,
    pub changed: Vec<Change>,
    pub same: usize,
}

/// A response that changed. Requests that were recorded several times are compared by their last recording.
#[derive(Debug, Serialize)]
pub struct Change {
    pub request: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<(String, String)>,
    /// Sizes of the decoded bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<(usize, usize)>,
    /// Lines that only one side has, marked by `-` and `+`; a few of each.
    pub lines: Vec<String>,
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        self.only_left.is_empty() && self.only_right.is_empty() && self.changed.is_empty()
    }
}

/// Compares two archives.
pub fn diff(left: &Archive, right: &Archive) -> Result<Differences, ArchiveError> {
    let (ours, theirs) = (latest(left), latest(right));
    let mut differences = Differences::default();
    for (request, index) in &ours {
        match theirs.get(request) {
            None => differences.only_left.push(request.clone()),
            Some(other) => match compare(left, *index, right, *other)? {
                Some(change) => differences.changed.push(Change { request: request.clone(), ..change }),
                None => differences.same += 1,
            },
        }
    }
    differences.only_right = theirs.into_keys().filter(|request| !ours.contains_key(request)).collect();
    Ok(differences)
}

/// Returns the last recording of each request.
fn latest(archive: &Archive) -> BTreeMap<String, usize> {
    let rules = MatchRules::default();
    let label = |stored: &StoredExchange| request_label(&stored.request, &rules);
    archive.exchanges().iter().enumerate().map(|(index, stored)| (label(stored), index)).collect()
}

fn compare(
    left: &Archive,
    one: usize,
    right: &Archive,
    other: usize,
) -> Result<Option<Change>, ArchiveError> {
    let (first, second) = (&left.exchanges()[one], &right.exchanges()[other]);
    let status =
        |stored: &StoredExchange| stored.response.as_ref().map_or("failed".into(), |r| r.status.to_string());
    let mime = |stored: &StoredExchange| {
        stored.response.as_ref().and_then(|response| response.headers.media_type()).unwrap_or_default()
    };
    let differing = |pair: (String, String)| (pair.0 != pair.1).then_some(pair);
    let mut change = Change {
        request: String::new(),
        status: differing((status(first), status(second))),
        mime: differing((mime(first), mime(second))),
        size: None,
        lines: Vec::new(),
    };
    if first.digest != second.digest {
        let (before, after) = (decoded(left, one)?, decoded(right, other)?);
        if before != after {
            change.size = Some((before.len(), after.len()));
            change.lines = text_difference(&before, &after);
        }
    }
    let has_changed = change.status.is_some() || change.mime.is_some() || change.size.is_some();
    Ok(has_changed.then_some(change))
}

fn decoded(archive: &Archive, index: usize) -> Result<Vec<u8>, ArchiveError> {
    let body = archive.body(index)?;
    let response = archive.exchanges()[index].response.as_ref();
    let decoded = response.and_then(|response| encoding::decode(&response.headers, &body));
    Ok(decoded.map_or_else(|| body.to_vec(), std::borrow::Cow::into_owned))
}

/// Shows where two texts begin to differ; nothing for other content.
fn text_difference(left: &[u8], right: &[u8]) -> Vec<String> {
    let (Ok(left), Ok(right)) = (std::str::from_utf8(left), std::str::from_utf8(right)) else {
        return Vec::new();
    };
    let (before, after): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    let start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let rest = before.len().min(after.len()) - start;
    let end = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(rest)
        .take_while(|(one, other)| one == other)
        .count();
    let (before, after) = (&before[start..before.len() - end], &after[start..after.len() - end]);
    let partner =
        |lines: &[&str], index: usize| lines.get(index).map(|line| (*line).to_owned()).unwrap_or_default();
    let mark = |lines: &[&str], others: &[&str], sign: char| -> Vec<String> {
        let shown = lines.iter().take(MAX_LINES).enumerate();
        let mut marked: Vec<String> =
            shown.map(|(index, line)| format!("{sign} {}", excerpt(line, &partner(others, index)))).collect();
        if lines.len() > MAX_LINES {
            marked.push(format!("{sign} … {} more lines", lines.len() - MAX_LINES));
        }
        marked
    };
    [mark(before, after, '-'), mark(after, before, '+')].concat()
}

/// Cuts a long line to the place where it differs from the other.
fn excerpt(line: &str, other: &str) -> String {
    if line.chars().count() <= MAX_LINE {
        return line.to_owned();
    }
    let common = line.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
    let start = common.saturating_sub(20);
    let cut: String = line.chars().skip(start).take(MAX_LINE).collect();
    if start > 0 { format!("…{cut}…") } else { format!("{cut}…") }
}

impl fmt::Display for Differences {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for request in &self.only_left {
            writeln!(formatter, "only left   {request}")?;
        }
        for request in &self.only_right {
            writeln!(formatter, "only right  {request}")?;
        }
        for change in &self.changed {
            let mut what = String::new();
            for (name, pair) in [("status", &change.status), ("mime", &change.mime)] {
                if let Some((left, right)) = pair {
                    write!(what, ", {name} {left} → {right}")?;
                }
            }
            if let Some((left, right)) = change.size {
                write!(what, ", body of {left} → {right} bytes")?;
            }
            writeln!(formatter, "changed     {}: {}", change.request, what.trim_start_matches(", "))?;
            for line in &change.lines {
                writeln!(formatter, "              {line}")?;
            }
        }
        let (left, right) = (self.only_left.len(), self.only_right.len());
        let (changed, same) = (self.changed.len(), self.same);
        writeln!(formatter, "{left} only left, {right} only right, {changed} changed, {same} the same")
    }
}
