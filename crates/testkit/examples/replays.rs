//! Records episodes on a modern site and on the practice sites, closes the sites, and replays them many times in a network
//! namespace without a route: every replay must show the same. `make test-replay` runs it.

#![allow(clippy::expect_used, reason = "a failed step fails the program")]

use std::{collections::BTreeMap, process::ExitCode, sync::Arc, time::Instant};

use practice::Sites;
use serde_json::json;
use testkit::{
    Farm, Tier, TlsSite, Webgym,
    arguments::Arguments,
    episode::{Act, Shown, modern_episode, run_episode},
    hosts::enter_network_namespace,
    modern_site::ModernSite,
};
use tokio::task::JoinSet;

/// A recorded episode.
struct Episode {
    name: &'static str,
    acts: Vec<Act>,
}

fn main() -> ExitCode {
    if let Err(reason) = enter_network_namespace() {
        eprintln!("replays: network namespaces cannot be used here: {reason}");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run())
}

async fn run() -> ExitCode {
    let arguments = Arguments::from_env(&["--webgym", "--replays", "--instances"]);
    let webgym = arguments.program("--webgym", "target/release/webgym");
    let replays = arguments.number("--replays").unwrap_or(100) as usize;
    let instances = arguments.number("--instances").unwrap_or(4) as usize;
    let folder = tempfile::tempdir().expect("a folder");
    let site = TlsSite::start("shop.localhost", ModernSite::default().router()).await;
    let sites = Sites::start(([127, 0, 0, 1], 0).into()).expect("the practice sites");
    let authority = site.authority().display().to_string();
    let archives = folder.path().display().to_string();
    let count = instances.to_string();
    let arguments = [
        "serve",
        &count,
        "--master-port",
        "0",
        "--node-port",
        "0",
        "--allow-private-network",
        "--archives",
        &archives,
    ];
    let mut process = Webgym::spawn_with(&webgym, &arguments, &[("SSL_CERT_FILE", &authority)]);
    process.wait_for_event("ready").await;
    let url = process.listening().iter().find(|one| one.tier == "master").expect("a master").url.clone();
    let farm = Farm::new(Tier::Master, &url);
    let episodes = Arc::new(episodes(&site.url("/"), &sites));
    for episode in episodes.iter() {
        let network = json!({"record": "sites", "session": format!("{}#0", episode.name)});
        let lease = farm.get_with(&json!({"network": network})).await;
        run_episode(&farm, &lease, &episode.acts).await;
        farm.reset(&lease).await.ok();
        println!("recorded {:<8} {} steps", episode.name, episode.acts.len());
    }
    testkit::eventually("the leases have ended", std::time::Duration::from_secs(60), async || {
        farm.info().await.to_string().contains(&format!("\"available\":{count}"))
    })
    .await;
    drop((site, sites));
    let start = Instant::now();
    let mut running = JoinSet::new();
    let mut shown: BTreeMap<usize, Vec<Vec<Shown>>> = BTreeMap::new();
    for number in 0..replays {
        if running.len() >= instances {
            collect(&mut running, &mut shown).await;
        }
        let (farm, episodes) = (farm.clone(), Arc::clone(&episodes));
        running.spawn(async move {
            let index = number % episodes.len();
            (index, replay(&farm, &episodes[index]).await)
        });
    }
    while !running.is_empty() {
        collect(&mut running, &mut shown).await;
    }
    let mut failed = false;
    for (index, replays) in &shown {
        failed |= report(episodes[*index].name, replays);
    }
    let steps: usize = shown.values().flatten().map(Vec::len).sum();
    println!("{replays} replays, {steps} steps in {:.0} s", start.elapsed().as_secs_f64());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn episodes(home: &str, sites: &Sites) -> Vec<Episode> {
    let visit = |path: &str| Act::Visit(sites.url(path));
    vec![
        Episode { name: "modern", acts: modern_episode(home) },
        Episode {
            name: "shop",
            acts: vec![
                visit("/shop/"),
                Act::Fill("Search", "lamp"),
                Act::Wait,
                visit("/shop/cart"),
                visit("/shop/"),
                Act::Wait,
            ],
        },
        Episode {
            name: "wiki",
            acts: vec![
                visit("/wiki/"),
                Act::Fill("Search", "river"),
                visit("/wiki/"),
                Act::Wait,
                visit("/"),
                visit("/wiki/"),
            ],
        },
        Episode {
            name: "course",
            acts: vec![
                visit("/course/buttons"),
                visit("/course/inputs"),
                visit("/course/long"),
                Act::Wait,
                visit("/jobs/"),
                visit("/course/"),
            ],
        },
    ]
}

async fn replay(farm: &Farm, episode: &Episode) -> Vec<Shown> {
    let network = json!({"replay": "sites", "session": format!("{}#0", episode.name), "seed": 7});
    let lease = farm.get_with(&json!({"network": network})).await;
    let shown = run_episode(farm, &lease, &episode.acts).await;
    let report = farm.network(&lease).await.ok();
    assert_eq!(report["matches"]["missed"], 0, "{report}");
    farm.reset(&lease).await.ok();
    shown
}

async fn collect(running: &mut JoinSet<(usize, Vec<Shown>)>, shown: &mut BTreeMap<usize, Vec<Vec<Shown>>>) {
    if let Some(finished) = running.join_next().await {
        let (index, replayed) = finished.expect("a replay does not fail");
        shown.entry(index).or_default().push(replayed);
    }
}

/// Compares all replays of an episode with the first. Returns whether they differ.
fn report(name: &str, replays: &[Vec<Shown>]) -> bool {
    let mut differences: BTreeMap<(usize, &'static str), usize> = BTreeMap::new();
    let first = &replays[0];
    for replay in replays {
        for (step, (expected, found)) in first.iter().zip(replay).enumerate() {
            let parts = [
                ("accessibility tree", expected.tree == found.tree),
                ("text", expected.text == found.text),
                ("address and title", expected.metadata == found.metadata),
                ("screenshot", expected.screenshot == found.screenshot),
            ];
            for (part, is_equal) in parts {
                if !is_equal {
                    let count = differences.entry((step, part)).or_default();
                    *count += 1;
                    if *count == 1 && part == "text" {
                        println!(
                            "--- {name}, step {step}: first\n{}\n--- other\n{}",
                            expected.text, found.text
                        );
                    }
                }
            }
        }
    }
    if differences.is_empty() {
        println!("{name:<8} {} replays of {} steps: identical", replays.len(), first.len());
    }
    for ((step, part), count) in &differences {
        println!("{name:<8} step {step}: another {part} in {count} of {} replays", replays.len());
    }
    !differences.is_empty()
}
