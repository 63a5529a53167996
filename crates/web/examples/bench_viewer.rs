//! Benchmarks the viewer in a real Chromium: the time until the table of an iteration with 10,000 trajectories is shown, without
//! a warm cache, and then the time to filter, sort and open one trajectory. Prints a table for docs/benchmarks.md.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at the first error")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/save_paths/mod.rs"]
mod save_paths;

use std::time::Instant;

use common::Tab;
use store::durable::Existing;
use store::pt::PtWriter;
use store::{IterationId, RunMetadata, SavePath, Split};
use web::server;
use web::view::{View, router};

const TRAJECTORIES: i64 = 10_000;
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let bytes = fill(&save_path);
    println!("{TRAJECTORIES} trajectories of {} steps, {} MiB", save_paths::actions().len(), bytes >> 20);
    let tab = Tab::open().await;
    let mut shown = Vec::new();
    for _ in 0..ROUNDS {
        shown.push(until_shown(&tab, &save_path).await);
    }
    let view = View::new(save_path, Vec::new());
    let server = server::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap();
    tab.visit(&format!("{}#/train/0", server.link())).await;
    tab.wait_until("document.querySelector('tr[data-row]')").await;
    let filter = timed(
        &tab,
        "location.hash = '#/train/0?q=kettle&class=hard'",
        "!document.querySelector('.filters output').textContent.startsWith('10,000 of')",
    )
    .await;
    let sort = timed(
        &tab,
        "location.hash = '#/train/0?sort=-steps'",
        "document.querySelector('th[aria-sort=descending]')",
    )
    .await;
    let one = timed(&tab, "location.hash = '#/train/0/9000'", "document.querySelector('.step-view')").await;
    tab.close().await;
    println!("| what | ms |\n|---|---|");
    println!(
        "| from opening the link to the table on the screen, no warm cache (median of {ROUNDS}) | {:.0} |",
        median(shown)
    );
    println!("| filter and search | {filter:.0} |\n| sort | {sort:.0} |\n| open one trajectory | {one:.0} |");
}

/// Writes an iteration whose trajectories have realistic prompts and accessibility trees.
fn fill(save_path: &SavePath) -> u64 {
    save_path.create_directories(Split::Train).unwrap();
    let path = save_path.iteration_file(IterationId::new(Split::Train, 0));
    let mut writer = PtWriter::create(&path).unwrap();
    for index in 0..TRAJECTORIES {
        let mut trajectory = save_paths::trajectory(index);
        for step in &mut trajectory.steps {
            step.observation.ac_tree = Some("id: 1, text: Some link of the page, tag: a\n".repeat(40));
            step.response.raw_prompt =
                format!("[{{\"role\":\"user\",\"content\":\"{}\"}}]", "words ".repeat(1000));
        }
        writer.push(&trajectory).unwrap();
    }
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
    path.metadata().unwrap().len()
}

/// Measures the time a user waits with a new server and a new page.
async fn until_shown(tab: &Tab, save_path: &SavePath) -> f64 {
    tab.visit("about:blank").await;
    let view = View::new(save_path.clone(), Vec::new());
    let server = server::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap();
    let since = Instant::now();
    tab.visit(&format!("{}#/train/0", server.link())).await;
    tab.wait_until("document.querySelector('.filters output')?.textContent === '10,000 of 10,000' && document.querySelectorAll('tr[data-row]').length > 10").await;
    since.elapsed().as_secs_f64() * 1000.0
}

/// Measures the time from a change until its effect is shown, by the page's own clock.
async fn timed(tab: &Tab, change: &str, shows: &str) -> f64 {
    let script = format!(
        "new Promise((done) => {{ const since = performance.now(); {change}; const check = () => {{ if ({shows}) done(performance.now() - since); \
         else requestAnimationFrame(check); }}; requestAnimationFrame(check); }})"
    );
    tab.eval(&script).await.as_f64().unwrap()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
