//! `webgym archive`: lists, checks, compares, packs, imports and exports archives of network traffic.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use net::escape::escape_terminal;
use replay::{Archive, ArchiveOptions, RecorderOptions, Redaction, har, index, list, wacz};

use crate::format::count_of;

#[derive(Subcommand)]
pub(crate) enum ArchiveCommand {
    /// List what was recorded: method, status, media type, size and URL.
    Ls {
        /// The directory of an archive.
        directory: PathBuf,
        #[arg(long)]
        json: bool,
    },
    /// Check every record, its digests and the index.
    Check {
        /// The directory of an archive.
        directory: PathBuf,
    },
    /// Compare two archives: requests that only one has, and responses that changed.
    Diff {
        /// The directory of an archive.
        left: PathBuf,
        /// The directory of the other one.
        right: PathBuf,
        #[arg(long)]
        json: bool,
    },
    /// Pack an archive as a WACZ file.
    Pack {
        /// The directory of an archive.
        directory: PathBuf,
        /// The file to write.
        #[arg(short, long, value_name = "FILE.wacz")]
        output: PathBuf,
    },
    /// Create an archive from a HAR, WARC or WACZ file, without its secrets.
    Import(ImportArgs),
    /// Write an archive in another format.
    Export {
        /// The directory of an archive.
        directory: PathBuf,
        /// The format to write.
        #[arg(long, value_enum)]
        to: Format,
        /// The file to write.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// A .har, .warc, .warc.gz or .wacz file.
    file: PathBuf,
    /// The directory to create.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Keep cookies, authorization and other secrets.
    #[arg(long)]
    keep_secrets: bool,
    /// Also remove this header of requests and responses. Can be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "keep_secrets")]
    redact_header: Vec<String>,
    /// Also remove the values of this query key. Can be repeated.
    #[arg(long, value_name = "KEY", conflicts_with = "keep_secrets")]
    redact_query: Vec<String>,
    /// Also remove the values of this field of JSON and form bodies. Can be repeated.
    #[arg(long, value_name = "FIELD", conflicts_with = "keep_secrets")]
    redact_field: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    Har,
}

pub(crate) fn run(command: &ArchiveCommand) -> anyhow::Result<ExitCode> {
    match command {
        ArchiveCommand::Ls { directory, json } => ls(directory, *json),
        ArchiveCommand::Check { directory } => {
            let report = replay::check(directory)?;
            print!("{}", escape_terminal(&report.to_string()));
            Ok(if report.is_intact() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        ArchiveCommand::Diff { left, right, json } => diff(left, right, *json),
        ArchiveCommand::Pack { directory, output } => {
            refresh_index(directory)?;
            let pages = wacz::pack(directory, output)?;
            println!("Wrote {} with {}.", output.display(), count_of(pages, "page"));
            Ok(ExitCode::SUCCESS)
        }
        ArchiveCommand::Import(args) => import(args),
        ArchiveCommand::Export { directory, to: Format::Har, output } => export_har(directory, output),
    }
}

/// Opens an archive and warns about what cannot be used.
fn open(directory: &Path) -> anyhow::Result<Arc<Archive>> {
    let archive = Archive::open(directory, ArchiveOptions::default())?;
    for problem in archive.problems() {
        eprintln!("warning: {}", escape_terminal(&problem.to_string()));
    }
    Ok(archive)
}

/// Rebuilds the index if it is missing or older than a WARC file.
fn refresh_index(directory: &Path) -> anyhow::Result<()> {
    if index::is_stale(directory)? {
        index::rebuild(directory)?;
    }
    Ok(())
}

fn ls(directory: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let archive = open(directory)?;
    let rows = list::rows(archive.scan());
    let text = if json {
        rows.iter()
            .map(|row| serde_json::to_string(row).map(|line| line + "\n"))
            .collect::<Result<String, _>>()?
    } else {
        escape_terminal(&list::render(&rows))
    };
    write_out(&text)
}

/// Writes a long text. Who reads only its beginning, such as `head`, ends the program without an error.
fn write_out(text: &str) -> anyhow::Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn diff(left: &Path, right: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let differences = replay::diff(&*open(left)?, &*open(right)?)?;
    let text = if json {
        serde_json::to_string_pretty(&differences)? + "\n"
    } else {
        escape_terminal(&differences.to_string())
    };
    write_out(&text)
}

fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let redaction = if args.keep_secrets {
        Redaction::none()
    } else {
        let mut redaction = Redaction::default();
        redaction.headers.extend_from_slice(&args.redact_header);
        redaction.query.extend_from_slice(&args.redact_query);
        redaction.fields.extend_from_slice(&args.redact_field);
        redaction
    };
    let report = replay::import(
        &args.file,
        &args.output,
        RecorderOptions { redaction, ..RecorderOptions::default() },
    )?;
    for problem in &report.problems {
        eprintln!("not imported: {}", escape_terminal(problem));
    }
    println!("Imported {} into {}.", count_of(report.exchanges, "exchange"), args.output.display());
    if report.problems.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} not imported; see above.", count_of(report.problems.len(), "record"));
    Ok(ExitCode::FAILURE)
}

fn export_har(directory: &Path, output: &Path) -> anyhow::Result<ExitCode> {
    let archive = open(directory)?;
    let file = File::create(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut writer = BufWriter::new(file);
    let exchanges = har::export(&archive, &mut writer)?;
    writer.flush().with_context(|| format!("cannot write {}", output.display()))?;
    println!("Wrote {} to {}.", count_of(exchanges, "exchange"), output.display());
    Ok(ExitCode::SUCCESS)
}
