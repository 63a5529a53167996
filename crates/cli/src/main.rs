//! The `webgym` command. Every subcommand has its own file; this one parses the command line and reports errors.

mod archive;
mod baseline;
mod bench;
mod browser_args;
mod compare;
mod config;
mod demo;
mod doctor;
mod drain;
mod environment;
mod export;
mod format;
mod judge;
mod logging;
mod metrics;
mod monitor;
mod nginx_config;
mod own_farm;
mod parent;
mod plot;
mod practice;
mod progress;
mod prompts;
mod ranks;
mod report;
mod rollout;
mod serve;
mod signals;
mod stream;
mod supervise;
mod tasks;
mod training_loop;
mod trajectories;
mod view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Browser farms and rollouts for web agents.
#[derive(Parser)]
#[command(name = "webgym", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Log only warnings and errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Log more; repeat for everything (-vv).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a farm on this machine: a master, a node and N browser instances.
    Serve(serve::ServeArgs),
    /// Start only a master, which forwards requests to nodes on other machines.
    Master(serve::MasterArgs),
    /// Start only a node with N browser instances, for a master on another machine.
    Node(serve::NodeArgs),
    /// Stop a node from granting new leases while existing ones continue, or undo that.
    Drain(drain::DrainArgs),
    /// Start a server for a single browser instance.
    Instance(serve::InstanceArgs),
    /// Collect trajectories with your policy model on a set of tasks, scored by a judge.
    Rollout(rollout::RolloutArgs),
    /// Train a policy: collect, export, train, verify and serve the new checkpoint, again and again.
    Loop(training_loop::LoopArgs),
    /// Run a program for a loop and end everything that it started.
    #[command(hide = true)]
    Supervise(supervise::SuperviseArgs),
    /// Serve episodes to other programs over the OpenEnv protocol and MCP.
    Env(environment::EnvArgs),
    /// Serve a browser to one MCP client on standard input and output.
    Mcp(environment::McpArgs),
    /// Show the configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Write, check and show the prompt templates of policy and judge.
    #[command(subcommand)]
    Prompts(prompts::PromptsCommand),
    /// Show the training loop of a save path, or the monitor of a run on another machine.
    Monitor(monitor::MonitorArgs),
    /// Print metrics of the trajectories in a save path.
    Metrics(metrics::MetricsArgs),
    /// Judge saved trajectories again.
    Judge(judge::JudgeArgs),
    /// List, show, compare, remove and check saved trajectories.
    #[command(subcommand)]
    Trajectories(trajectories::TrajectoriesCommand),
    /// Browse saved trajectories in a web browser, also while a run is in progress.
    View(view::ViewArgs),
    /// Plot metrics over iterations: success, steps, crashes, diversity and more.
    Plot(plot::PlotArgs),
    /// Export trajectories to the formats of trainers.
    Export(export::ExportArgs),
    /// Merge the files of several ranks into one iteration file.
    Aggregate(export::AggregateArgs),
    /// List, check, compare, pack, import and export archives of network traffic.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Print an nginx configuration for one or more masters.
    NginxConfig(nginx_config::NginxArgs),
    /// Check that this machine has what webgym needs, and how to fix what is missing.
    Doctor(doctor::DoctorArgs),
    /// Run a complete example in one process: practice sites, a baseline policy and a farm.
    Demo(demo::DemoArgs),
    /// Benchmark this machine: plain Chromium and the farm under the same load.
    Bench(bench::BenchArgs),
    /// Serve the built-in baseline policy with the API of vLLM.
    Baseline(baseline::BaselineArgs),
    /// Serve the practice websites and write their tasks.
    Practice(practice::PracticeArgs),
    /// Create task files from the files of benchmarks.
    #[command(subcommand)]
    Tasks(tasks::TasksCommand),
    /// Compare answers with reference answers, as judge=reference does: a line of JSON with answer and reference for each.
    Compare,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // The supervisor must have no other threads that start processes or wait for them.
    if let Command::Supervise(args) = &cli.command {
        return supervise::run(args);
    }
    let plain = matches!(cli.command, Command::Demo(_) | Command::Doctor(_) | Command::Monitor(_));
    logging::init(&logging::LogOptions { quiet: cli.quiet, verbose: cli.verbose, plain });
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("webgym: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(run(cli.command, cli.quiet));
    // Do not wait for threads that still wait for a browser process to exit.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("webgym: {}", net::escape::escape_terminal(&error_chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// Joins an error and its causes. Most of our errors already contain their cause, which is then not repeated.
fn error_chain(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text {
        text if text.is_empty() => cause,
        text if text.contains(&cause) => text,
        text => format!("{text}: {cause}"),
    })
}

async fn run(command: Command, quiet: bool) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::serve(args, quiet).await,
        Command::Master(args) => serve::master(args, quiet).await,
        Command::Node(args) => serve::node(args, quiet).await,
        Command::Drain(args) => drain::run(&args).await,
        Command::Instance(args) => serve::instance(args, quiet).await,
        Command::Rollout(args) => Box::pin(rollout::rollout(args, quiet)).await,
        Command::Loop(args) => Box::pin(training_loop::run(args)).await,
        Command::Supervise(args) => Ok(supervise::run(&args)),
        Command::Env(args) => Box::pin(environment::run(args)).await,
        Command::Mcp(args) => Box::pin(environment::run_mcp(args)).await,
        Command::Config(command) => config::run(&command),
        Command::Prompts(command) => prompts::run(&command),
        Command::Monitor(args) => monitor::run(&args).await,
        Command::Metrics(args) => metrics::run(&args),
        Command::Judge(args) => judge::run(&args).await,
        Command::Trajectories(command) => trajectories::run(&command),
        Command::View(args) => view::run(args).await,
        Command::Plot(args) => plot::run(&args),
        Command::Export(args) => export::run_export(&args),
        Command::Aggregate(args) => export::run_aggregate(&args),
        Command::Archive(command) => archive::run(&command),
        Command::NginxConfig(args) => Ok(nginx_config::run(&args)),
        Command::Doctor(args) => doctor::doctor(&args).await,
        Command::Demo(args) => Box::pin(demo::demo(args, quiet)).await,
        Command::Baseline(args) => baseline::run(&args).await,
        Command::Practice(args) => practice::run(&args).await,
        Command::Tasks(command) => tasks::run(&command),
        Command::Compare => compare::run(),
        Command::Bench(args) => bench::run(&args).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contained_cause_is_not_repeated() {
        let error = anyhow::anyhow!("no such file")
            .context("cannot read tasks: no such file")
            .context("the run stopped");
        assert_eq!(error_chain(&error), "the run stopped: cannot read tasks: no such file");
    }

    #[test]
    fn command_line_definition_is_valid() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
