//! Takes the screenshot of the monitor for the README, with a simulated run and a page of the practice shop as the agent's
//! screenshot.
//!
//!     cargo run -p webgym-web --example screenshots_monitor [FOLDER]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "stops at the first error")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/fake_run.rs"]
mod fake_run;

use std::{path::Path, time::Duration};

use common::Tab;
use fake_run::FakeRun;
use proto::trajectory::Outcome;
use rollout::run::event::Stage;
use web::monitor::Monitor;

const TASKS: usize = 420;
const DONE: usize = 163;
const RUNNING: usize = 64;
/// The task whose details are open.
const OPEN: usize = DONE + 2;
const STAGES: [Stage; 9] = [
    Stage::Policy,
    Stage::Execute,
    Stage::Policy,
    Stage::Screenshot,
    Stage::Execute,
    Stage::Allocate,
    Stage::Navigate,
    Stage::Policy,
    Stage::Reward,
];

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/images".to_owned());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let agent_view = scratch.path().join("step_003.png");
    let tab = Tab::open().await;
    let sites = practice::Sites::start(([127, 0, 0, 1], 0).into()).unwrap();
    tab.set_size(1280, 768, 1.0).await;
    tab.visit(&sites.url("/shop/")).await;
    tab.screenshot(&agent_view).await;

    let run = FakeRun::new(TASKS);
    let mut monitored = run.monitored();
    monitored.farm =
        Some(fake_run::farm(&[("http://10.0.0.11:8080", 32, 30), ("http://10.0.0.12:8080", 32, 31)]).await);
    let monitor = Monitor::start(monitored, ([127, 0, 0, 1], 0).into(), None).await.unwrap();
    simulate(&run, &agent_view).await;
    tab.set_colour_scheme("light").await;
    take(&tab, &monitor, &run, 1440, 1060, &folder.join("monitor.png")).await;
    tab.set_colour_scheme("dark").await;
    take(&tab, &monitor, &run, 1440, 900, &scratch.path().join("dark.png")).await;
    tab.close().await;
}

/// Simulates episodes with steps at a steady pace, so that the rates are realistic.
async fn simulate(run: &FakeRun, agent_view: &Path) {
    for index in 0..DONE {
        let outcome = match index * 37 % 100 {
            0..66 => Outcome::Success,
            66..97 => Outcome::Failure,
            _ => Outcome::InfraLost,
        };
        // Most belong to an earlier part of the run; finishing them all at once would distort the rates.
        if index < DONE - 4 {
            run.state.add_finished(index, outcome);
        } else {
            run.finish(index, outcome);
        }
    }
    for index in DONE..DONE + RUNNING {
        run.enter_stage(index, 1 + index * 7 % 13, STAGES[index % STAGES.len()]);
    }
    for (url, action, thought) in [
        (
            "https://shop.example/",
            "Type [2] [reading lamp]",
            "The shop has a search field; that is the quickest way to the lamp.",
        ),
        (
            "https://shop.example/search?q=reading+lamp",
            "Click [14]",
            "Sort by price to see the lamps under 40 first.",
        ),
        (
            "https://shop.example/search?q=reading+lamp&sort=price",
            "Click [9]",
            "The third lamp ships tomorrow; open it to see its price.",
        ),
    ] {
        run.record_page(OPEN, url, agent_view);
        run.record_decision(OPEN, action, thought);
    }
    run.record_page(OPEN, "https://shop.example/lamps/harbour-reading-lamp", agent_view);
    run.enter_stage(OPEN, 3, Stage::Policy);
    for beat in 0..120_u64 {
        run.record_decision(DONE + 1, "Scroll [down]", "");
        run.record_duration(Stage::Policy, 1300 + beat * 37 % 900);
        run.record_duration(Stage::Execute, 240 + beat * 13 % 400);
        run.record_duration(Stage::Screenshot, 60 + beat % 40);
        run.record_duration(Stage::Navigate, 700 + beat * 11 % 600);
        run.record_duration(Stage::Allocate, 20 + beat % 9);
        run.record_duration(Stage::Reward, 2100 + beat * 17 % 1500);
        tokio::time::sleep(Duration::from_millis(45)).await;
    }
}

async fn take(tab: &Tab, monitor: &Monitor, run: &FakeRun, width: u32, height: u32, file: &Path) {
    tab.set_size(width, height, 1.0).await;
    tab.visit("about:blank").await;
    tab.visit(&format!("{}#task={}", monitor.link(), OPEN)).await;
    tab.wait_until(
        "document.querySelector('.drawer .screenshot')?.complete && document.querySelector('.nodes li')",
    )
    .await;
    for _ in 0..60 {
        run.record_decision(DONE + 1, "Scroll [down]", "");
        tokio::time::sleep(Duration::from_millis(45)).await;
    }
    tab.eval("document.activeElement.blur(); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
    tab.screenshot(file).await;
    println!("{}", file.display());
}
