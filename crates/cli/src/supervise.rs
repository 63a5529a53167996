//! `webgym supervise`: the process in which a loop runs a program. Not for people.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

#[derive(Args)]
pub(crate) struct SuperviseArgs {
    /// The file to which the program's output is appended.
    #[arg(long)]
    log: PathBuf,
    /// The file that is locked while anything of the program runs.
    #[arg(long)]
    lock: PathBuf,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<String>,
}

pub(crate) fn run(args: &SuperviseArgs) -> ExitCode {
    match train::supervisor::process::run(&args.log, &args.lock, &args.program) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("webgym supervise: {error}");
            ExitCode::FAILURE
        }
    }
}
