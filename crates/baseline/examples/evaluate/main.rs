//! Plays every practice task with the baseline policy in a real browser and prints a table of what came of it.
//!
//! `cargo run --release -p webgym-baseline --example evaluate -- [--no-text] [--vanilla] [--test-steps] [--verbose] [NAME…]`
//! plays the tasks whose id contains one of the names, all without names. `--no-text` leaves the page's text out of the
//! prompt, so that the numbered elements are all there is. A measuring tool, not part of the agent: it is the only place
//! where tasks and policy meet.

mod play;
mod table;

use std::{error::Error, net::Ipv4Addr};

use browser::{Host, Launch, Options};
use practice::{PracticeTask, Sites};
use rollout::config::PromptVersion;

use play::{Played, Player};

struct Wishes {
    page_text: bool,
    verbose: bool,
    version: PromptVersion,
    test_steps: bool,
    names: Vec<String>,
}

impl Wishes {
    fn read() -> Self {
        let mut wishes = Self {
            page_text: true,
            verbose: false,
            version: PromptVersion::Complete,
            test_steps: false,
            names: Vec::new(),
        };
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--no-text" => wishes.page_text = false,
                "--verbose" => wishes.verbose = true,
                "--vanilla" => wishes.version = PromptVersion::Vanilla,
                "--test-steps" => wishes.test_steps = true,
                name => wishes.names.push(name.to_owned()),
            }
        }
        wishes
    }

    fn wants(&self, task: &PracticeTask) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| task.task_id.contains(name))
    }

    /// The step limits of a train run, or of a test run.
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
    let wishes = Wishes::read();
    let sites = Sites::start((Ipv4Addr::LOCALHOST, 0).into())?;
    let executable =
        browser::find_browsers().into_iter().next().ok_or("no browser on this machine; run scripts/setup")?;
    let host = Host::launch(&Launch::new(executable)).await?;
    let base = sites.url("");
    let tasks = practice::tasks(&base).into_iter().filter(|task| wishes.wants(task));
    let mut played: Vec<Played> = Vec::new();
    for task in tasks {
        let instance = host.instance(&Options::default()).await?;
        let mut player = Player::new(instance, wishes.page_text, wishes.version, wishes.verbose);
        let max_steps = wishes.max_steps(task.difficulty);
        let one = player.play(task, max_steps).await;
        player.leave().await;
        println!("{}", table::line(&one));
        played.push(one);
    }
    print!("{}", table::summary(&played));
    host.close().await;
    sites.stop().await;
    Ok(())
}
