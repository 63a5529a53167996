//! `webgym tasks`: creates task files from the files that benchmarks publish.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::{Args, Subcommand};
use rollout::import::{
    Benchmark, ImportOptions, Imported, MiniwobOptions, WEBARENA_SITES, import, import_miniwob,
};
use store::durable::{AtomicFile, Existing};

use crate::format::count_of;

#[derive(Subcommand)]
pub(crate) enum TasksCommand {
    /// Convert the file of a benchmark. Nothing is written if a record of it is not a task.
    #[command(subcommand)]
    Import(ImportCommand),
}

#[derive(Subcommand)]
pub(crate) enum ImportCommand {
    /// MiniWoB: pages of the Python package miniwob, scored by their own reward (judge=program).
    Miniwob(MiniwobArgs),
    /// WebVoyager: WebVoyager_data.jsonl.
    Webvoyager(FileArgs),
    /// Online-Mind2Web: Online_Mind2Web.json.
    OnlineMind2web(FileArgs),
    /// WebArena-Verified: webarena-verified.json. Checks that need the network log stay unjudged.
    WebarenaVerified(WebarenaArgs),
    /// BrowseComp: browse_comp_test_set.csv, which is decrypted. Do not publish the result.
    Browsecomp(QuestionArgs),
    /// AssistantBench: assistant_bench_v1.0_dev.jsonl or …_test.jsonl.
    Assistantbench(QuestionArgs),
}

#[derive(Args)]
pub(crate) struct FileArgs {
    /// The file of the benchmark.
    file: PathBuf,
    /// The task file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Args)]
pub(crate) struct QuestionArgs {
    #[command(flatten)]
    files: FileArgs,
    /// The page at which every task starts.
    #[arg(long, value_name = "URL", default_value = "https://duckduckgo.com/")]
    website: String,
}

#[derive(Args)]
pub(crate) struct WebarenaArgs {
    #[command(flatten)]
    files: FileArgs,
    /// The address of a site, such as shopping=http://host:7770. Repeatable.
    #[arg(long = "site", value_name = "NAME=URL", value_parser = parse_site)]
    sites: Vec<(String, String)>,
    /// Leave out tasks of sites without an address.
    #[arg(long)]
    skip_other_sites: bool,
}

#[derive(Args)]
pub(crate) struct MiniwobArgs {
    /// The folder html of the package: python3 -c 'import miniwob, os; print(os.path.dirname(miniwob.__file__))'
    folder: PathBuf,
    /// Where that folder is served, for example by python3 -m http.server --directory FOLDER 8000.
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// The number of tasks of each page; each has its own seed, from 0.
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u32,
    /// Only this page, such as click-test. Repeatable.
    #[arg(long = "page", value_name = "NAME")]
    pages: Vec<String>,
    /// The time after which a page ends its episode.
    #[arg(long, value_name = "SECONDS", default_value_t = 1000)]
    episode_secs: u32,
    /// The task file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

fn parse_site(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, url)| (name.to_owned(), url.to_owned()));
    pair.ok_or_else(|| format!("must be NAME=URL; the names are {}", WEBARENA_SITES.join(", ")))
}

pub(crate) fn run(command: &TasksCommand) -> anyhow::Result<ExitCode> {
    let TasksCommand::Import(command) = command;
    let (imported, output) = match command {
        ImportCommand::Miniwob(args) => {
            let options = MiniwobOptions {
                base_url: args.base_url.clone(),
                seeds: args.seeds,
                pages: args.pages.clone(),
                episode_seconds: args.episode_secs,
            };
            (import_miniwob(&args.folder, &options)?, &args.output)
        }
        ImportCommand::Webvoyager(files) => {
            import_file(Benchmark::Webvoyager, files, &ImportOptions::default())?
        }
        ImportCommand::OnlineMind2web(files) => {
            import_file(Benchmark::OnlineMind2web, files, &ImportOptions::default())?
        }
        ImportCommand::Browsecomp(args) => import_questions(Benchmark::Browsecomp, args)?,
        ImportCommand::Assistantbench(args) => import_questions(Benchmark::Assistantbench, args)?,
        ImportCommand::WebarenaVerified(args) => {
            let sites: BTreeMap<String, String> = args.sites.iter().cloned().collect();
            let options =
                ImportOptions { sites, skip_other_sites: args.skip_other_sites, ..ImportOptions::default() };
            import_file(Benchmark::WebarenaVerified, &args.files, &options)?
        }
    };
    for note in &imported.notes {
        eprintln!("{}", net::escape::escape_terminal(note));
    }
    write_lines(output, &imported.lines).with_context(|| format!("cannot write {}", output.display()))?;
    println!("{} written to {}", count_of(imported.lines.len(), "task"), output.display());
    Ok(ExitCode::SUCCESS)
}

fn import_questions(benchmark: Benchmark, args: &QuestionArgs) -> anyhow::Result<(Imported, &PathBuf)> {
    let options = ImportOptions { website: args.website.clone(), ..ImportOptions::default() };
    import_file(benchmark, &args.files, &options)
}

fn import_file<'a>(
    benchmark: Benchmark,
    files: &'a FileArgs,
    options: &ImportOptions,
) -> anyhow::Result<(Imported, &'a PathBuf)> {
    let content =
        std::fs::read(&files.file).with_context(|| format!("cannot read {}", files.file.display()))?;
    Ok((import(benchmark, &files.file, &content, options)?, &files.output))
}

fn write_lines(path: &Path, lines: &[String]) -> std::io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    for line in lines {
        writeln!(file, "{line}")?;
    }
    file.commit(Existing::Replace)
}
