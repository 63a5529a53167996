//! Packs an archive directory.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read, Seek, Write},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    Archive, ArchiveError, ArchiveOptions, encoding, index, layout,
    warc::digest::{sha256_label, to_hex},
};

const VERSION: &str = "1.1.1";
/// Lines of the index in one gzip member.
const LINES_PER_BLOCK: usize = 300;

/// Writes `output`, which must not exist, and returns how many pages it lists.
pub fn pack(directory: &Path, output: &Path) -> Result<usize, ArchiveError> {
    let archive = Archive::open(directory, ArchiveOptions::default())?;
    if let Some(problem) = archive.problems().first() {
        let problem =
            format!("not packed, because the archive has problems: {problem}; see webgym archive check");
        return Err(ArchiveError::file(directory, problem));
    }
    let file = File::create_new(output).map_err(ArchiveError::io("create", output))?;
    let packed = Packer { zip: ZipWriter::new(file), resources: Vec::new() }.pack(&archive);
    packed.map_err(|error| {
        let _ = std::fs::remove_file(output);
        ArchiveError::io("write", output)(error)
    })
}

struct Packer<W: Write + Seek> {
    zip: ZipWriter<W>,
    resources: Vec<Value>,
}

impl<W: Write + Seek> Packer<W> {
    fn pack(mut self, archive: &Archive) -> io::Result<usize> {
        for path in &archive.scan().files {
            self.add(&format!("archive/{}", layout::file_name(path)), &mut File::open(path)?)?;
        }
        let (blocks, summary) = compress_index(&index::lines(archive.scan()))?;
        self.add("indexes/index.cdx.gz", &mut blocks.as_slice())?;
        self.add("indexes/index.idx", &mut summary.as_bytes())?;
        let pages = pages(archive);
        self.add("pages/pages.jsonl", &mut pages.join("").as_bytes())?;
        let package = json!({
            "profile": "data-package",
            "wacz_version": VERSION,
            "created": format!("{:.0}", Timestamp::now()),
            "software": concat!("webgym-rs ", env!("CARGO_PKG_VERSION")),
            "resources": std::mem::take(&mut self.resources),
        });
        let package = format!("{package:#}\n");
        self.write("datapackage.json", &mut package.as_bytes())?;
        let digest = json!({"path": "datapackage.json", "hash": sha256_label(package.as_bytes())});
        self.write("datapackage-digest.json", &mut format!("{digest:#}\n").as_bytes())?;
        self.zip.finish()?.flush()?;
        Ok(pages.len() - 1)
    }

    /// Adds a file and lists it in the data package.
    fn add(&mut self, path: &str, content: &mut impl Read) -> io::Result<()> {
        let (hash, bytes) = self.write(path, content)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        self.resources.push(json!({"name": name.to_lowercase(), "path": path, "hash": hash, "bytes": bytes}));
        Ok(())
    }

    /// Stores a file without compression, so that readers can seek in it.
    fn write(&mut self, path: &str, content: &mut impl Read) -> io::Result<(String, u64)> {
        // The date of the entry is fixed: the dates that matter are in the files.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(true);
        self.zip.start_file(path, options)?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut piece = vec![0; 1 << 16];
        loop {
            let read = content.read(&mut piece)?;
            if read == 0 {
                return Ok((format!("sha256:{}", to_hex(&hasher.finalize())), bytes));
            }
            hasher.update(&piece[..read]);
            self.zip.write_all(&piece[..read])?;
            bytes += read as u64;
        }
    }
}

/// Compresses an index in blocks and returns the list of blocks beside it.
fn compress_index(lines: &[String]) -> io::Result<(Vec<u8>, String)> {
    let mut blocks = Vec::new();
    let mut summary = format!("!meta 0 {}\n", json!({"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}));
    for chunk in lines.chunks(LINES_PER_BLOCK) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for line in chunk {
            encoder.write_all(line.as_bytes())?;
            encoder.write_all(b"\n")?;
        }
        let block = encoder.finish()?;
        let prefix = chunk[0].split(" {").next().unwrap_or_default();
        let place = json!({"offset": blocks.len(), "length": block.len(), "digest": sha256_label(&block)});
        let _ = writeln!(summary, "{prefix} {place}");
        blocks.extend(block);
    }
    Ok((blocks, summary))
}

/// The documents of an archive, after a line that says what this is.
fn pages(archive: &Archive) -> Vec<String> {
    let header = json!({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"});
    let mut pages = vec![format!("{header}\n")];
    for (index, stored) in archive.exchanges().iter().enumerate() {
        let Some(response) = &stored.response else { continue };
        let is_html = response.headers.media_type().is_some_and(|kind| kind == "text/html");
        let is_document = stored.resource_type.as_deref().is_none_or(|kind| kind == "document");
        if stored.request.method != "GET" || response.status != 200 || !is_html || !is_document {
            continue;
        }
        let id = &sha256_label(format!("{} {}", stored.date, stored.request.url).as_bytes())[7..27];
        let ts = format!("{:.3}", stored.date);
        let mut page = json!({"id": id, "url": stored.request.url, "ts": ts});
        if let Some(title) =
            archive.body(index).ok().and_then(|body| title(&encoding::decode(&response.headers, &body)?))
        {
            page["title"] = title.into();
        }
        pages.push(format!("{page}\n"));
    }
    pages
}

fn title(html: &[u8]) -> Option<String> {
    let html = String::from_utf8_lossy(html);
    let start = html.find("<title>")? + "<title>".len();
    let end = html[start..].find("</title>")?;
    let title: String = html[start..start + end].split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then(|| title.chars().take(200).collect())
}
