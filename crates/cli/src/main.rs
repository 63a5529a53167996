//! The `webgym` command. One file a subcommand; this one only reads the command line and says how it went.

mod baseline;
mod bench;
mod browser_args;
mod config;
mod contact;
mod demo;
mod doctor;
mod drain;
mod export;
mod judge;
mod metrics;
mod monitor;
mod nginx_config;
mod plot;
mod progress;
mod ranks;
mod report;
mod rollout;
mod serve;
mod signals;
mod telemetry;
mod trajectories;
mod view;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Browser farms and rollouts for web agents.
#[derive(Parser)]
#[command(name = "webgym", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Say less: only warnings and errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more. Twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a farm on this machine: a master, a node and N browser instances.
    Serve(serve::ServeArgs),
    /// Start a master alone: it routes to nodes elsewhere.
    Master(serve::MasterArgs),
    /// Start a node alone: N browser instances for a master elsewhere.
    Node(serve::NodeArgs),
    /// Let a node's leases run out while it gives no new ones, or take that back.
    Drain(drain::DrainArgs),
    /// Start a server around a single browser instance.
    Instance(serve::InstanceArgs),
    /// Collect trajectories: tasks, your policy model, browsers, a judge.
    Rollout(rollout::RolloutArgs),
    /// ObserveOptions at the configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Watch a run that goes on elsewhere.
    Monitor(monitor::MonitorArgs),
    /// Figures over the trajectories of a save path.
    Metrics(metrics::MetricsArgs),
    /// Judge saved trajectories again.
    Judge(judge::JudgeArgs),
    /// List, show, compare, remove and check saved trajectories.
    #[command(subcommand)]
    Trajectories(trajectories::TrajectoriesCommand),
    /// ObserveOptions through saved trajectories in the browser, also while a run goes on.
    View(view::ViewArgs),
    /// Draw the curves over iterations: success, steps, crashes, diversity and more.
    Plot(plot::PlotArgs),
    /// Write trajectories in the shapes that trainers read.
    Export(export::ExportArgs),
    /// Merge the files of several ranks into one iteration.
    Aggregate(export::AggregateArgs),
    /// Print an nginx configuration for one or more masters.
    NginxConfig(nginx_config::NginxArgs),
    /// Check that this machine has what webgym needs, and say how to mend what is missing.
    Doctor(doctor::DoctorArgs),
    /// See the whole job at work: practice sites, a baseline policy and a farm, all inside this process.
    Demo(demo::DemoArgs),
    /// Measure this machine: bare Chromium against the farm, side by side.
    Bench(bench::BenchArgs),
    /// Serve the built-in baseline policy alone, as vLLM would serve a model.
    Baseline(baseline::BaselineArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let plain = matches!(cli.command, Command::Demo(_) | Command::Doctor(_) | Command::Monitor(_));
    telemetry::start(&telemetry::Telling { quiet: cli.quiet, verbose: cli.verbose, plain });
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("webgym: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(run(cli.command, cli.quiet));
    // Threads that wait for a browser to be gone must not keep us.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("webgym: {}", net::escape::escape_terminal(&in_words(&error)));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes, each said once: most of ours already hold their cause in their own sentence.
fn in_words(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said {
        said if said.is_empty() => cause,
        said if said.contains(&cause) => said,
        said => format!("{said}: {cause}"),
    })
}

async fn run(command: Command, quiet: bool) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::serve(args, quiet).await,
        Command::Master(args) => serve::master(args, quiet).await,
        Command::Node(args) => serve::node(args, quiet).await,
        Command::Drain(args) => drain::run(&args).await,
        Command::Instance(args) => serve::instance(args, quiet).await,
        Command::Rollout(args) => rollout::rollout(args, quiet).await,
        Command::Config(command) => config::run(&command),
        Command::Monitor(args) => monitor::run(&args).await,
        Command::Metrics(args) => metrics::run(&args),
        Command::Judge(args) => judge::run(&args).await,
        Command::Trajectories(command) => trajectories::run(&command),
        Command::View(args) => view::run(args).await,
        Command::Plot(args) => plot::run(&args),
        Command::Export(args) => export::run_export(&args),
        Command::Aggregate(args) => export::run_aggregate(&args),
        Command::NginxConfig(args) => Ok(nginx_config::run(&args)),
        Command::Doctor(args) => doctor::doctor(&args).await,
        Command::Demo(args) => demo::demo(args, quiet).await,
        Command::Baseline(args) => baseline::run(&args).await,
        Command::Bench(args) => bench::run(&args).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("no such file")
            .context("cannot read tasks: no such file")
            .context("the run stopped");
        assert_eq!(in_words(&error), "the run stopped: cannot read tasks: no such file");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
