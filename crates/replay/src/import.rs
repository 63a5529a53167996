//! HAR, WARC and WACZ files into an archive directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Archive, ArchiveError, ArchiveOptions, Recorder, RecorderOptions, har, layout,
    wacz::{UnpackLimits, unpack},
};

/// What was imported, and what not.
#[derive(Debug, Default)]
pub struct ImportReport {
    pub exchanges: usize,
    /// Everything that is not in the archive now, with the reason.
    pub problems: Vec<String>,
}

/// Imports a file by its name's ending. The directory must be empty or missing.
pub fn import(file: &Path, directory: &Path, options: RecorderOptions) -> Result<ImportReport, ArchiveError> {
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_har = matches!(ending.as_str(), "har" | "json");
    let is_wacz = matches!(ending.as_str(), "wacz" | "zip");
    if !is_har && !is_wacz && !layout::is_warc(file) {
        let problem = "unknown kind of file; .har, .warc, .warc.gz and .wacz can be imported";
        return Err(ArchiveError::file(file, problem));
    }
    fs::metadata(file).map_err(ArchiveError::io("read", file))?;
    refuse_existing(directory)?;
    let recorder = Recorder::open(directory, options)?;
    let report = if is_har {
        import_har(file, &recorder)?
    } else if is_wacz {
        let folder = TemporaryFolder::create(directory)?;
        let files = unpack(file, &folder.0, UnpackLimits::default())?;
        import_warc(files, &recorder)?
    } else {
        import_warc(vec![file.to_owned()], &recorder)?
    };
    recorder.finish()?;
    Ok(report)
}

fn refuse_existing(directory: &Path) -> Result<(), ArchiveError> {
    let is_empty = fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
    if is_empty {
        Ok(())
    } else {
        Err(ArchiveError::file(directory, "it is not empty; choose another directory"))
    }
}

fn import_har(file: &Path, recorder: &Recorder) -> Result<ImportReport, ArchiveError> {
    let report = har::import(file, recorder)?;
    let without_body = report
        .without_body
        .iter()
        .map(|url| format!("{url}: the HAR file does not have the body; export it again with content"));
    let problems = without_body.chain(report.invalid).collect();
    Ok(ImportReport { exchanges: report.exchanges, problems })
}

fn import_warc(files: Vec<PathBuf>, recorder: &Recorder) -> Result<ImportReport, ArchiveError> {
    // Bodies are needed once each.
    let archive = Archive::open_files(files, ArchiveOptions { max_cached: 0, ..ArchiveOptions::default() })?;
    let mut report = ImportReport::default();
    report.problems.extend(archive.problems().iter().map(ToString::to_string));
    for index in 0..archive.exchanges().len() {
        match archive.exchange(index).and_then(|exchange| recorder.append(exchange)) {
            Ok(()) => report.exchanges += 1,
            Err(error @ (ArchiveError::Record { .. } | ArchiveError::Exchange { .. })) => {
                report.problems.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// A folder for unpacked files that is removed in the end.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let path = directory.join(format!(".import-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir_all(&path).map_err(ArchiveError::io("create", &path))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
