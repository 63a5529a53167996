//! Runs the baseline policy on every practice task in a real browser and prints a table of the results.
//!
//! `cargo run --release -p webgym-baseline --example evaluate -- [--no-text] [--vanilla] [--test-steps] [--verbose] [NAME…]`
//! runs the tasks whose id contains one of the names, or all tasks if there is no name. `--no-text` leaves the page's text
//! out of the prompt, so that the policy sees only the numbered elements. This example is not part of the policy, which
//! must not depend on the tasks.

mod play;
mod table;

use std::{error::Error, net::Ipv4Addr};

use browser::{Host, Launch, Options};
use practice::{PracticeTask, Sites};
use rollout::config::PromptVersion;

use play::{Player, TaskResult};

struct Args {
    page_text: bool,
    verbose: bool,
    version: PromptVersion,
    test_steps: bool,
    names: Vec<String>,
}

impl Args {
    fn parse() -> Self {
        let mut args = Self {
            page_text: true,
            verbose: false,
            version: PromptVersion::Complete,
            test_steps: false,
            names: Vec::new(),
        };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--no-text" => args.page_text = false,
                "--verbose" => args.verbose = true,
                "--vanilla" => args.version = PromptVersion::Vanilla,
                "--test-steps" => args.test_steps = true,
                name => args.names.push(name.to_owned()),
            }
        }
        args
    }

    fn selects(&self, task: &PracticeTask) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| task.task_id.contains(name))
    }

    /// Returns the step limit of a train or test run.
    fn max_steps(&self, difficulty: i64) -> i64 {
        let limits = if self.test_steps { [30, 50, 70] } else { [10, 20, 30] };
        match difficulty {
            ..=3 => limits[0],
            4..=6 => limits[1],
            _ => limits[2],
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let sites = Sites::start((Ipv4Addr::LOCALHOST, 0).into())?;
    let executable =
        browser::find_browsers().into_iter().next().ok_or("no browser on this machine; run scripts/setup")?;
    let host = Host::launch(&Launch::new(executable)).await?;
    let base = sites.url("");
    let tasks = practice::tasks(&base).into_iter().filter(|task| args.selects(task));
    let mut results: Vec<TaskResult> = Vec::new();
    for task in tasks {
        let instance = host.instance(&Options::default()).await?;
        let mut player = Player::new(instance, args.page_text, args.version, args.verbose);
        let max_steps = args.max_steps(task.difficulty);
        let result = player.play(task, max_steps).await;
        player.close().await;
        println!("{}", table::line(&result));
        results.push(result);
    }
    print!("{}", table::summary(&results));
    host.close().await;
    sites.stop().await;
    Ok(())
}
