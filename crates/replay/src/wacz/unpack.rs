//! Takes the WARC files out of a WACZ file. Its names and sizes are not trusted.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use zip::{ZipArchive, read::ZipFile};

use crate::{ArchiveError, layout, warc::digest::to_hex};

/// How much a WACZ file may unpack to.
#[derive(Clone, Copy, Debug)]
pub struct UnpackLimits {
    /// All files together, in bytes.
    pub max_total: u64,
    /// How many times larger than in the ZIP file a file may be. WARC files are compressed already.
    pub max_ratio: u64,
    pub max_entries: usize,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self { max_total: 64 << 30, max_ratio: 100, max_entries: 100_000 }
    }
}

/// The smallest file whose ratio is checked: small texts compress well.
const MIN_RATIO_BYTES: u64 = 1 << 20;
const MAX_PACKAGE: u64 = 64 << 20;

/// Writes the WARC files into `folder` and returns their paths.
pub fn unpack(path: &Path, folder: &Path, limits: UnpackLimits) -> Result<Vec<PathBuf>, ArchiveError> {
    let wrong = |problem: String| ArchiveError::file(path, problem);
    let file = File::open(path).map_err(ArchiveError::io("open", path))?;
    let length = file.metadata().map_err(ArchiveError::io("read", path))?.len();
    let mut zip = ZipArchive::new(file).map_err(|error| wrong(format!("not a WACZ file: {error}")))?;
    let names = check_entries(&mut zip, length, limits).map_err(wrong)?;
    let digests = read_digests(&mut zip).map_err(wrong)?;
    let mut files = Vec::new();
    for (index, name) in names {
        let target = folder.join(layout::file_name(Path::new(&name)));
        let mut entry = zip.by_index(index).map_err(|error| wrong(format!("{name}: {error}")))?;
        let digest = extract(&mut entry, &target).map_err(|error| wrong(format!("{name}: {error}")))?;
        let expected = digests.iter().find(|(path, _)| *path == name).map(|(_, digest)| digest.as_str());
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(wrong(format!(
                "{name}: its digest is {digest}, but datapackage.json says {expected}"
            )));
        }
        files.push(target);
    }
    if files.is_empty() {
        return Err(wrong("it has no archive/*.warc.gz".into()));
    }
    Ok(files)
}

/// Checks all entries before anything is written, and returns the WARC files.
fn check_entries(
    zip: &mut ZipArchive<File>,
    length: u64,
    limits: UnpackLimits,
) -> Result<Vec<(usize, String)>, String> {
    if zip.len() > limits.max_entries {
        return Err(format!("it has {} entries, more than the limit of {}", zip.len(), limits.max_entries));
    }
    let (mut names, mut total, mut compressed) = (Vec::new(), 0_u64, 0_u64);
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index).map_err(|error| format!("entry {index}: {error}"))?;
        let name = entry.name().map_err(|error| format!("entry {index}: {error}"))?.into_owned();
        check_name(&entry, &name)?;
        total = total.saturating_add(entry.size());
        compressed = compressed.saturating_add(entry.compressed_size());
        let ratio = entry.size() / entry.compressed_size().max(1);
        if entry.size() > MIN_RATIO_BYTES && ratio > limits.max_ratio {
            return Err(format!(
                "{name} is {ratio} times larger than in the file, more than the limit of {}: it may be a zip bomb",
                limits.max_ratio
            ));
        }
        let is_warc = name.strip_prefix("archive/").is_some_and(|rest| !rest.contains('/'))
            && layout::is_warc(Path::new(&name));
        if is_warc {
            names.push((index, name));
        }
    }
    if total > limits.max_total {
        return Err(format!("it unpacks to {total} bytes, more than the limit of {}", limits.max_total));
    }
    if compressed > length {
        return Err("its entries overlap: it may be a zip bomb".into());
    }
    let mut seen = std::collections::HashSet::new();
    match names.iter().find(|(_, name)| !seen.insert(name.clone())) {
        Some((_, name)) => Err(format!("{name} is in it twice")),
        None => Ok(names),
    }
}

fn check_name<R: Read>(entry: &ZipFile<'_, R>, name: &str) -> Result<(), String> {
    let is_outside = entry.enclosed_name().is_none()
        || name.starts_with('/')
        || name.contains('\\')
        || name.split('/').any(|part| part == "..");
    if is_outside {
        return Err(format!("the name {name:?} leads out of the folder; nothing was unpacked"));
    }
    if entry.is_symlink() {
        return Err(format!("{name} is a symbolic link; nothing was unpacked"));
    }
    Ok(())
}

/// Returns paths and SHA-256 digests that datapackage.json lists.
fn read_digests(zip: &mut ZipArchive<File>) -> Result<Vec<(String, String)>, String> {
    let Ok(entry) = zip.by_name("datapackage.json") else { return Err("it has no datapackage.json".into()) };
    let mut text = Vec::new();
    let wrong = |error: &dyn std::fmt::Display| format!("datapackage.json: {error}");
    entry.take(MAX_PACKAGE).read_to_end(&mut text).map_err(|error| wrong(&error))?;
    let package: Value = serde_json::from_slice(&text).map_err(|error| wrong(&error))?;
    let resources = package["resources"].as_array().cloned().unwrap_or_default();
    let digests = resources.iter().filter_map(|resource| {
        let (path, hash) = (resource["path"].as_str()?, resource["hash"].as_str()?);
        hash.starts_with("sha256:").then(|| (path.to_owned(), hash.to_owned()))
    });
    Ok(digests.collect())
}

/// Writes an entry, but not more than it claims to have, and returns its digest.
fn extract<R: Read>(entry: &mut ZipFile<'_, R>, target: &Path) -> std::io::Result<String> {
    let size = entry.size();
    let mut file = File::create_new(target)?;
    let (mut hasher, mut written, mut piece) = (Sha256::new(), 0_u64, vec![0; 1 << 16]);
    loop {
        let read = entry.read(&mut piece)?;
        if read == 0 {
            return Ok(format!("sha256:{}", to_hex(&hasher.finalize())));
        }
        written += read as u64;
        if written > size {
            drop(file);
            let _ = fs::remove_file(target);
            return Err(std::io::Error::other(format!(
                "it is larger than the {size} bytes that it claims to have"
            )));
        }
        hasher.update(&piece[..read]);
        file.write_all(&piece[..read])?;
    }
}
