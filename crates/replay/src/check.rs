//! Checks an archive: every record with its digests, what refers to what, and the index.

use std::{fmt, path::Path};

use crate::{Archive, ArchiveError, ArchiveOptions, index, layout};

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub files: usize,
    pub records: u64,
    pub exchanges: usize,
    /// What is wrong, with file and offset.
    pub problems: Vec<String>,
    /// What is worth knowing but not wrong.
    pub notes: Vec<String>,
}

impl CheckReport {
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Reads everything in an archive.
pub fn check(directory: &Path) -> Result<CheckReport, ArchiveError> {
    let archive = Archive::open(directory, ArchiveOptions { max_cached: 0, ..ArchiveOptions::default() })?;
    let mut report = CheckReport {
        files: archive.scan().files.len(),
        records: archive.scan().records,
        exchanges: archive.exchanges().len(),
        problems: archive.problems().iter().map(ToString::to_string).collect(),
        notes: Vec::new(),
    };
    check_index(directory, &archive, &mut report)?;
    Ok(report)
}

fn check_index(directory: &Path, archive: &Archive, report: &mut CheckReport) -> Result<(), ArchiveError> {
    let path = layout::index_path(directory);
    if !path.exists() {
        report.notes.push(format!("{} is missing; it is written when it is needed", path.display()));
        return Ok(());
    }
    if index::is_stale(directory)? {
        report
            .notes
            .push(format!("{} is older than a WARC file; it is rebuilt when it is needed", path.display()));
        return Ok(());
    }
    let text = std::fs::read(&path).map_err(ArchiveError::io("read", &path))?;
    let text = String::from_utf8_lossy(&text);
    let expected = index::lines(archive.scan());
    let mut found = text.lines();
    for (number, wanted) in expected.iter().enumerate() {
        if found.next() != Some(wanted) {
            let line = number + 1;
            report.problems.push(format!(
                "{}, line {line}: differs from the WARC files, which give {wanted}; delete the index to have it rebuilt",
                path.display()
            ));
            return Ok(());
        }
    }
    let more = found.count();
    if more > 0 {
        report.problems.push(format!("{}: {more} lines for nothing in the WARC files", path.display()));
    }
    Ok(())
}

impl fmt::Display for CheckReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(formatter, "{problem}")?;
        }
        for note in &self.notes {
            writeln!(formatter, "note: {note}")?;
        }
        let Self { files, records, exchanges, problems, .. } = self;
        let verdict = match problems.len() {
            0 => "no problems".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        writeln!(formatter, "{files} WARC files, {records} records, {exchanges} exchanges: {verdict}")
    }
}
