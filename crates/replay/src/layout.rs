//! Where the files of an archive are: as in an unpacked WACZ, `archive/*.warc.gz`, `indexes/` and `pages/`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::ArchiveError;

pub(crate) const WARC_FOLDER: &str = "archive";

/// Returns the WARC files of an archive in the order of their names.
pub fn warc_files(directory: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let folder = directory.join(WARC_FOLDER);
    if !folder.is_dir() {
        let problem = "not an archive: it has no folder archive/ with .warc.gz files";
        return Err(ArchiveError::file(directory, problem));
    }
    let read = |path: &Path| {
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()
    };
    let entries: Vec<PathBuf> = read(&folder).map_err(ArchiveError::io("list", &folder))?;
    let mut files: Vec<PathBuf> =
        entries.into_iter().filter(|path| is_warc(path) && path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Whether a file is a WARC file by its name.
pub fn is_warc(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    [".warc", ".warc.gz"].iter().any(|end| name.ends_with(end))
}

pub(crate) fn index_path(directory: &Path) -> PathBuf {
    directory.join("indexes").join("index.cdxj")
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes a file under another name first, so that readers see all of it or nothing.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), ArchiveError> {
    let failed = || ArchiveError::io("write", path);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed())?;
    let temporary = folder.join(format!(".{}.{}.tmp", file_name(path), uuid::Uuid::new_v4().simple()));
    let write = || {
        let mut file = fs::File::create_new(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failed()(error)
    })
}
