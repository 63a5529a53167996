//! Recording and replaying network traffic: the session option of every lease, incomplete archives, and the reports.

use std::collections::HashMap;

use proto::{
    network::OnMiss,
    trajectory::{Outcome, Task},
};
use rollout::{
    config::{Config, NetworkSource},
    session_options::SessionSource,
};
use serde_json::{Value, json};
use testkit::sim_farm::{Call, Fault, SimFarmOptions};

use crate::harness::{
    Harness, action_keys, assert_ended_early, clicks_then_answers, ending, outcome, task, tasks,
};

fn report() -> Value {
    let counts = json!({"exact": 41, "normalised": 3, "scored": 1, "missed": 2});
    let request = |kind: &str, url: &str| json!({"method": "GET", "url": url, "match": kind, "score": 0.4});
    json!({
        "replay": "shop", "recorded": 5, "matches": counts, "sites": {"http://shop.test": counts},
        "requests": [request("exact", "http://shop.test/"), request("missed", "http://shop.test/missing.js")],
    })
}

fn replay_config() -> Config {
    let mut config = Config::default();
    config.env_config.host_ip = Some("farm.test".into());
    config.env_config.network = NetworkSource::Replay;
    config.env_config.archive = Some("shop".into());
    config
}

async fn replayed(script: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Harness {
    let farm = SimFarmOptions { network_report: Some(report()), ..SimFarmOptions::default() };
    let mut harness = Harness::new(farm.with_script(script), clicks_then_answers(3)).await;
    harness.config = replay_config();
    harness
}

#[tokio::test]
async fn recording_run_sets_the_option_of_every_lease() {
    let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(1)).await;
    harness.config.env_config.host_ip = Some("farm.test".into());
    harness.config.env_config.record_network = Some("shop".into());
    harness.limits.episodes = 1;
    let result = harness.run(tasks(2)).await;
    assert_eq!(result.trajectories.len(), 2);
    let networks: Vec<Value> =
        harness.farm.session_options().iter().map(|options| options["network"].clone()).collect();
    let sessions: Vec<&Value> = networks.iter().map(|network| &network["session"]).collect();
    assert_eq!(sessions, ["t0#0", "t1#0"]);
    assert!(networks.iter().all(|network| network["record"] == "shop"), "{networks:?}");
    assert_ne!(networks[0]["seed"], networks[1]["seed"]);
    for trajectory in &result.trajectories {
        assert_eq!(outcome(trajectory), Outcome::Success, "this farm has no /network, which loses nothing");
        assert_eq!(trajectory.metadata.network, None);
    }
}

#[tokio::test]
async fn live_run_neither_sets_the_option_nor_asks_for_a_report() {
    let mut harness = replayed(|_| Fault::None).await;
    harness.config = Config::default();
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!((harness.farm.session_options(), trajectory.metadata.network), (vec![Value::Null], None));
    assert!(harness.farm.calls().iter().all(|call| call.path != "/network"));
}

#[tokio::test]
async fn incomplete_archive_ends_the_episode_without_retry() {
    for combined_calls in [true, false] {
        let farm = SimFarmOptions { network_report: Some(report()), combined_calls, ..Default::default() };
        let script = |call: &Call| {
            if call.runs("click_coords") && call.nth == 1 { Fault::ReplayMiss } else { Fault::None }
        };
        let mut harness = Harness::new(farm.with_script(script), clicks_then_answers(3)).await;
        harness.config = replay_config();
        let trajectory = harness.run_one(task(0)).await;
        assert_ended_early(&trajectory, 2);
        assert_eq!(outcome(&trajectory), Outcome::ReplayMiss);
        assert_eq!(
            ending(&trajectory),
            "not in the archive: GET http://shop.test/missing.js is not in the archive"
        );
        assert_eq!(trajectory.metadata.extra["attempt"], 0);
        assert_eq!((harness.farm.leases_granted(), harness.farm.active_leases().len()), (1, 0));
        assert_eq!(harness.state.totals().outcomes["replay_miss"], 1);
        let network = trajectory.metadata.network.as_ref().unwrap();
        assert_eq!(network.misses[0].url, "http://shop.test/missing.js");
        let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
        assert_eq!(
            (metrics.replay_misses, metrics.crashed, metrics.scored),
            (1, 0, 0),
            "never a failed task"
        );
    }
}

#[tokio::test]
async fn miss_at_the_start_page_is_not_a_failed_navigation() {
    let script = |call: &Call| if call.runs("visit_page") { Fault::ReplayMiss } else { Fault::None };
    let mut harness = replayed(script).await;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), action_keys(&trajectory).len()), (Outcome::ReplayMiss, 1));
    assert_eq!(harness.policy.count(), 0);
    let paths: Vec<String> = harness.farm.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(paths, ["/get", "/metadata", "/execute", "/network", "/reset"]);
    assert!(!harness.save_path().navigation_errors().exists());
}

#[tokio::test]
async fn archive_without_any_page_does_not_stop_the_run() {
    let script = |call: &Call| if call.returns_screenshot() { Fault::ReplayMiss } else { Fault::None };
    let mut harness = replayed(script).await;
    let result = harness.run(tasks(12)).await;
    assert_eq!(result.collected.unwrap().finished, 12);
    assert!(result.trajectories.iter().all(|trajectory| outcome(trajectory) == Outcome::ReplayMiss));
}

#[tokio::test]
async fn resumed_run_does_not_repeat_a_miss() {
    let script = |call: &Call| if call.returns_screenshot() { Fault::ReplayMiss } else { Fault::None };
    let mut harness = replayed(script).await;
    harness.run_one(task(0)).await;
    let (_journal, recovered) = store::Journal::resume(&harness.save_path().journal(harness.id())).unwrap();
    assert!(recovered.finished.contains(&0));
    assert_eq!(recovered.scan.finished[&0].summary.outcome, Some(Outcome::ReplayMiss));
}

#[tokio::test]
async fn coverage_is_saved_and_counted_by_site() {
    let mut harness = replayed(|_| Fault::None).await;
    let result = harness.run(tasks(2)).await;
    let network = result.trajectories[0].metadata.network.as_ref().unwrap();
    assert_eq!((network.matches.exact, network.matches.missed, network.recorded), (41, 2, 5));
    assert_eq!(network.sites["http://shop.test"], network.matches);
    let summaries: Vec<_> = result.trajectories.iter().map(store::Summary::of).collect();
    let report = store::metrics::of_summaries(harness.id(), &summaries);
    let coverage = report.breakdown.coverage.as_ref().unwrap();
    assert_eq!((coverage.by_site[0].name.as_str(), coverage.by_site[0].matches.missed), ("shop.test", 4));
    assert_eq!(coverage.by_task.len(), 2);
    let table = report.to_string();
    assert!(table.contains("shop.test") && table.contains("87.2 %") && table.contains("4.3 %"), "{table}");
    assert_eq!(
        harness.state.totals().coverage.values().map(proto::network::MatchCounts::total).sum::<u64>(),
        94
    );
}

#[test]
fn explicit_options_replace_those_of_the_keys() {
    let mut config = replay_config();
    config.env_config.on_miss = Some(OnMiss::NotFound);
    config.env_config.session.insert("network".into(), json!({"ignore_keys": ["sid"], "replay": "bank"}));
    let mut one = task(7);
    one.extra.insert("session".into(), json!({"network": {"on_miss": "live", "session": "mine"}}));
    let source = SessionSource::for_tasks(&config, &[task(0), one.clone()]).unwrap();
    let source = source.with_attempts(HashMap::from([(0, 0), (1, 1)]));
    let network = |task: &Task| source.options(task).unwrap().network.unwrap();
    let (first, second) = (network(&task(0)), network(&one));
    assert_eq!((first.replay.as_deref(), first.on_miss), (Some("bank"), Some(OnMiss::NotFound)));
    assert_eq!((first.ignore_keys, first.session.as_deref()), (vec!["sid".to_owned()], Some("t0#0")));
    assert_eq!((second.on_miss, second.session.as_deref()), (Some(OnMiss::Live), Some("mine")));
    let mut again = task(0);
    again.trajectory_index = 1;
    assert_eq!(network(&again).session.as_deref(), Some("t0#1"));
    assert_ne!(network(&again).seed, first.seed);
    one.extra.insert("session".into(), json!({"network": {"record": "x"}}));
    let refused = SessionSource::for_tasks(&config, &[one]).unwrap_err().to_string();
    assert!(refused.contains("record and replay together"), "{refused}");
}

#[test]
fn recording_and_replay_have_the_same_session_and_seed() {
    let mut config = Config::default();
    config.env_config.host_ip = Some("farm.test".into());
    config.env_config.record_network = Some("shop".into());
    let source = SessionSource::for_tasks(&config, &[]).unwrap();
    let network = |task: Task| source.options(&task).unwrap().network.unwrap();
    let recorded = network(task(0));
    config.env_config.record_network = None;
    config.env_config.network = NetworkSource::Replay;
    config.env_config.archive = Some("shop".into());
    let source = SessionSource::for_tasks(&config, &[]).unwrap();
    let replayed = source.options(&task(0)).unwrap().network.unwrap();
    assert_eq!((recorded.session, recorded.seed), (replayed.session.clone(), replayed.seed));
    assert_eq!(
        (replayed.session.as_deref(), replayed.seed),
        (Some("t0#0"), Some(4_220_772_547)),
        "archives depend on them"
    );
    let unnamed = network(Task { task_id: None, ..task(3) }).session.unwrap();
    assert!(unnamed.len() == 34 && unnamed.ends_with("#0"), "{unnamed}");
}
