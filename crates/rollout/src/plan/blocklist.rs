//! Websites that blocked the agent recently, one JSON object per line in `<save_path>/blocklist.jsonl`. The file is shared
//! by all collectors of a save path: entries are appended in single writes, bad lines are skipped, and an entry expires
//! after twelve hours.

use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

use jiff::{SignedDuration, Timestamp};
use proto::trajectory::TaskId;
use serde::{Deserialize, Serialize};

use crate::address;

pub const FILE_NAME: &str = "blocklist.jsonl";

const ENTRY_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// An entry of the blocklist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedSite {
    pub domain: String,
    pub url: String,
    pub blocked_at: String,
    #[serde(default)]
    pub task_id: Option<TaskId>,
    #[serde(default)]
    pub screenshot_path: Option<String>,
}

impl BlockedSite {
    pub fn new(
        website: &str,
        at: Timestamp,
        task_id: Option<TaskId>,
        screenshot_path: Option<String>,
    ) -> Self {
        Self {
            domain: address::domain(website),
            url: website.to_owned(),
            blocked_at: at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string(),
            task_id,
            screenshot_path,
        }
    }
}

/// The domains that are blocked at a given time.
#[derive(Clone, Debug, Default)]
pub struct Blocklist {
    /// The time at which each domain's latest entry expires.
    until: HashMap<String, Timestamp>,
}

impl Blocklist {
    /// Reads the list. Bad lines are skipped and returned as warnings.
    pub fn read(save_path: &Path, now: Timestamp) -> io::Result<(Self, Vec<String>)> {
        let path = save_path.join(FILE_NAME);
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut list = Self::default();
        let mut warnings = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if let Err(reason) = list.add_line(line, now) {
                warnings.push(format!("{}:{}: {reason}", path.display(), index + 1));
            }
        }
        Ok((list, warnings))
    }

    fn add_line(&mut self, line: &str, now: Timestamp) -> Result<(), String> {
        let line = line.trim_start_matches('\u{feff}');
        let site: BlockedSite = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let blocked_at =
            parse_time(&site.blocked_at).ok_or_else(|| format!("{:?} is not a time", site.blocked_at))?;
        if blocked_at.duration_since(now) > ENTRY_LIFETIME {
            return Err(format!("{:?} is in the future", site.blocked_at));
        }
        let until = blocked_at.checked_add(ENTRY_LIFETIME).map_err(|error| error.to_string())?;
        if until > now {
            let domain = address::domain(&site.domain);
            let latest = self.until.entry(domain).or_insert(until);
            *latest = until.max(*latest);
        }
        Ok(())
    }

    pub fn is_blocked(&self, domain: &str) -> bool {
        self.until.contains_key(domain)
    }

    pub fn len(&self) -> usize {
        self.until.len()
    }

    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}

/// Appends a site with a single `write` on a file opened for appending, so that lines of several collectors never mix.
pub fn append(save_path: &Path, site: &BlockedSite) -> io::Result<PathBuf> {
    let path = save_path.join(FILE_NAME);
    let line = serde_json::to_string(site)? + "\n";
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let written = file.write(line.as_bytes())?;
    if written != line.len() {
        return Err(io::Error::new(
            io::ErrorKind::WriteZero,
            "only part of the line was written; the disk may be full",
        ));
    }
    Ok(path)
}

/// Parses an ISO 8601 time with an offset or `Z`. Without one it is local time, as Python's `datetime.now()` writes it.
fn parse_time(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    civil.to_zoned(jiff::tz::TimeZone::system()).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn read_lines(lines: &str, now: &str) -> (Blocklist, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), lines).unwrap();
        Blocklist::read(folder.path(), time(now)).unwrap()
    }

    #[test]
    fn entry_expires_after_twelve_hours() {
        let folder = tempfile::tempdir().unwrap();
        let site = BlockedSite::new("https://www.Shop.example/x", time("2025-01-01T00:00:00Z"), None, None);
        assert_eq!(site.domain, "shop.example");
        append(folder.path(), &site).unwrap();
        let is_blocked =
            |now: &str| Blocklist::read(folder.path(), time(now)).unwrap().0.is_blocked("shop.example");
        assert!(is_blocked("2025-01-01T00:00:00Z"));
        assert!(is_blocked("2025-01-01T11:59:59Z"));
        assert!(!is_blocked("2025-01-01T12:00:00Z"));
    }

    #[test]
    fn entry_is_written_with_five_fields() {
        let site = BlockedSite::new(
            "http://a.b",
            time("2025-01-01T00:00:00Z"),
            Some(TaskId::Number(3)),
            Some("p.png".into()),
        );
        assert_eq!(
            serde_json::to_string(&site).unwrap(),
            r#"{"domain":"a.b","url":"http://a.b","blocked_at":"2025-01-01T00:00:00.000000+00:00","task_id":3,"screenshot_path":"p.png"}"#
        );
    }

    #[test]
    fn missing_file_blocks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (list, warnings) = Blocklist::read(folder.path(), time("2025-01-01T00:00:00Z")).unwrap();
        assert!(list.is_empty() && warnings.is_empty());
    }

    #[test]
    fn bad_lines_are_skipped_with_a_warning() {
        let good = r#"{"domain":"A.com","url":"u","blocked_at":"2025-01-01T09:00:00+00:00"}"#;
        let lines = format!(
            "{{\"domain\":\n\n{good}\n{{\"domain\":\"b.com\",\"url\":\"u\",\"blocked_at\":\"soon\"}}\n{}\n",
            r#"{"domain":"c.com","url":"u","blocked_at":"2099-01-01T00:00:00Z"}"#
        );
        let (list, warnings) = read_lines(&lines, "2025-01-01T10:00:00Z");
        assert!(list.is_blocked("a.com") && list.len() == 1);
        assert_eq!(warnings.len(), 3);
        assert!(warnings[0].contains("blocklist.jsonl:1: "), "{}", warnings[0]);
        assert!(warnings[1].contains(":4: \"soon\" is not a time"), "{}", warnings[1]);
    }

    #[test]
    fn time_without_offset_is_local() {
        let local = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S.123456").to_string();
        let line = format!(r#"{{"domain":"a.com","url":"u","blocked_at":"{local}"}}"#);
        let (list, warnings) = read_lines(&line, &Timestamp::now().to_string());
        assert!(list.is_blocked("a.com"), "{warnings:?}");
    }
}
