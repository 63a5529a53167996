//! Takes the README's picture of the monitor: a run that is only played, with a page of the practice shop as what the agent
//! sees.
//!
//!     cargo run -p webgym-web --example pictures_monitor [FOLDER]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an example that cannot go on may stop")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/play.rs"]
mod play;

use std::{path::Path, time::Duration};

use common::Tab;
use play::Play;
use proto::trajectory::Outcome;
use rollout::run::event::Stage;
use web::monitor::Monitor;

const TASKS: usize = 420;
const OVER: usize = 163;
const RUNNING: usize = 64;
/// The task that is looked into.
const OPEN: usize = OVER + 2;
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
    let seen = scratch.path().join("step_003.png");
    let tab = Tab::open().await;
    let sites = practice::Sites::start(([127, 0, 0, 1], 0).into()).unwrap();
    tab.size(1280, 768, 1.0).await;
    tab.visit(&sites.url("/shop/")).await;
    tab.screenshot(&seen).await;

    let play = Play::new(TASKS);
    let mut watched = play.watched();
    watched.farm =
        Some(play::farm(&[("http://10.0.0.11:8080", 32, 30), ("http://10.0.0.12:8080", 32, 31)]).await);
    let monitor = Monitor::start(watched, ([127, 0, 0, 1], 0).into(), None).await.unwrap();
    perform(&play, &seen).await;
    tab.scheme("light").await;
    picture(&tab, &monitor, &play, 1440, 1060, &folder.join("monitor.png")).await;
    tab.scheme("dark").await;
    picture(&tab, &monitor, &play, 1440, 900, &scratch.path().join("dark.png")).await;
    tab.close().await;
}

/// Steps at an even pace, so that rates have something to measure.
async fn perform(play: &Play, seen: &Path) {
    for index in 0..OVER {
        let outcome = match index * 37 % 100 {
            0..66 => Outcome::Success,
            66..97 => Outcome::Failure,
            _ => Outcome::InfraLost,
        };
        // Most of an earlier part of the run, or the rates would tell of a run that takes no time.
        if index < OVER - 4 {
            play.board.take_over(index, outcome);
        } else {
            play.ends(index, outcome);
        }
    }
    for index in OVER..OVER + RUNNING {
        play.at(index, 1 + index * 7 % 13, STAGES[index % STAGES.len()]);
    }
    for (url, action, thought) in [
        (
            "https://shop.example/",
            "Type [2] [reading lamp]",
            "The shop has a search field; the lamp is quickest found there.",
        ),
        (
            "https://shop.example/search?q=reading+lamp",
            "Click [14]",
            "Sort by price, so that those under 40 come first.",
        ),
        (
            "https://shop.example/search?q=reading+lamp&sort=price",
            "Click [9]",
            "The third lamp ships tomorrow; open it to see what it costs.",
        ),
    ] {
        play.sees(OPEN, url, seen);
        play.decides(OPEN, action, thought);
    }
    play.sees(OPEN, "https://shop.example/lamps/harbour-reading-lamp", seen);
    play.at(OPEN, 3, Stage::Policy);
    for beat in 0..120_u64 {
        play.decides(OVER + 1, "Scroll [down]", "");
        play.took(Stage::Policy, 1300 + beat * 37 % 900);
        play.took(Stage::Execute, 240 + beat * 13 % 400);
        play.took(Stage::Screenshot, 60 + beat % 40);
        play.took(Stage::Navigate, 700 + beat * 11 % 600);
        play.took(Stage::Allocate, 20 + beat % 9);
        play.took(Stage::Reward, 2100 + beat * 17 % 1500);
        tokio::time::sleep(Duration::from_millis(45)).await;
    }
}

async fn picture(tab: &Tab, monitor: &Monitor, play: &Play, width: u32, height: u32, file: &Path) {
    tab.size(width, height, 1.0).await;
    tab.visit("about:blank").await;
    tab.visit(&format!("{}#task={}", monitor.link(), OPEN)).await;
    tab.until(
        "document.querySelector('.drawer .screenshot')?.complete && document.querySelector('.nodes li')",
    )
    .await;
    for _ in 0..60 {
        play.decides(OVER + 1, "Scroll [down]", "");
        tokio::time::sleep(Duration::from_millis(45)).await;
    }
    tab.js("document.activeElement.blur(); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
    tab.screenshot(file).await;
    println!("{}", file.display());
}
