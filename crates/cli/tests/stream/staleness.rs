//! Starts follow acknowledgments, whatever happens to the episodes.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::ModelRequest,
};

use crate::harness::{LIMIT, StreamTest, answer_at_second_step, assert_success};

/// A policy that records the tasks that it was asked about.
fn recording_policy() -> (
    Arc<Mutex<HashSet<String>>>,
    impl Fn(&ModelRequest) -> testkit::sim_model::ModelReply + Send + Sync + 'static,
) {
    let started = Arc::new(Mutex::new(HashSet::new()));
    let recorded = Arc::clone(&started);
    let policy = move |request: &ModelRequest| {
        recorded.lock().unwrap().insert(request.task().to_owned());
        answer_at_second_step(request)
    };
    (started, policy)
}

fn unacknowledged(status: &Value) -> u64 {
    status["start_limit"]["unacknowledged"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_episode_starts_beyond_the_staleness() {
    let (started, policy) = recording_policy();
    let test = StreamTest::new(12, SimFarmOptions::default(), policy).await;
    let more = ["env_config.max_staleness=1", "env_config.stream_batch=2", "env_config.server_size=8"];
    let (mut webgym, consumer) = test.start(&more).await;
    for acknowledged in 0..12 {
        let wanted = (acknowledged + 4).min(12);
        let all =
            |status: &Value| status["available"] == wanted && unacknowledged(status) == wanted - acknowledged;
        consumer.status_when("all that may start have finished", all).await;
        assert_eq!(started.lock().unwrap().len() as u64, wanted, "only these episodes have started");
        let item = consumer.take(1).await.remove(0);
        consumer.acknowledge(&item).await;
    }
    assert_success(&mut webgym).await;
}

/// Started items of the killed run count, and its acknowledgments too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_run_keeps_to_the_staleness() {
    let (started, policy) = recording_policy();
    let test = StreamTest::new(8, SimFarmOptions::default(), policy).await;
    let more = ["env_config.max_staleness=0", "env_config.stream_batch=2", "env_config.group_size=2"];
    let (mut webgym, consumer) = test.start(&more).await;
    consumer.status_when("two groups have finished", |status| status["available"] == 2).await;
    let item = consumer.take(1).await.remove(0);
    consumer.acknowledge(&item).await;
    consumer.status_when("a third group has finished", |status| status["available"] == 3).await;
    webgym.signal(Signal::KILL);
    webgym.wait_for_exit(LIMIT).await;
    let (mut webgym, consumer) = test.start(&more).await;
    let status = consumer.status().await;
    assert_eq!(status["start_limit"], json!({"started": 3, "unacknowledged": 2, "limit": 2}));
    assert_eq!(started.lock().unwrap().len(), 3);
    loop {
        let mut items = consumer.read(&[("limit", "1")]).await;
        items.retain(|item| item["type"] != "heartbeat");
        if items[0]["type"] == "end" {
            break;
        }
        assert!(unacknowledged(&consumer.status().await) <= 2);
        consumer.acknowledge(&items[0]).await;
    }
    assert_success(&mut webgym).await;
    assert_eq!(started.lock().unwrap().len(), 8);
}

/// Losses before the first success are held back and cannot be acknowledged. The run goes on all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_at_the_start_do_not_block_the_run() {
    let script = |call: &Call| {
        let is_lost = call.lease < 3 && call.runs("click_coords");
        if is_lost { Fault::InstanceLost } else { Fault::None }
    };
    let farm = SimFarmOptions::default().with_script(script);
    let test = StreamTest::new(6, farm, answer_at_second_step).await;
    let more = ["env_config.max_staleness=0", "env_config.stream_batch=1", "env_config.max_infra_retries=0"];
    let (mut webgym, consumer) = test.start(&more).await;
    let mut outcomes = Vec::new();
    for _ in 0..6 {
        let item = consumer.take(1).await.remove(0);
        outcomes.push(item["trajectory"]["outcome"].as_str().unwrap().to_owned());
        consumer.acknowledge(&item).await;
    }
    outcomes.sort();
    assert_eq!(outcomes, ["infra_lost", "infra_lost", "infra_lost", "success", "success", "success"]);
    assert_success(&mut webgym).await;
}

/// Tasks that wait for the consumer are not cancelled as stragglers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_tasks_are_not_cancelled_by_the_grace_period() {
    let test = StreamTest::new(4, SimFarmOptions::default(), answer_at_second_step).await;
    let more = [
        "env_config.max_staleness=0",
        "env_config.stream_batch=2",
        "env_config.completion_threshold=0.5",
        "env_config.completion_grace_period=0",
    ];
    let (mut webgym, consumer) = test.start(&more).await;
    consumer.status_when("half of the tasks are done", |status| status["available"] == 2).await;
    let items = consumer.take(2).await;
    assert!(items.iter().all(|item| item["trajectory"]["outcome"] == "success"));
    consumer.acknowledge(&items[0]).await;
    let third = &consumer.read(&[("after", items[1]["cursor"].as_str().unwrap()), ("limit", "1")]).await[0];
    assert_eq!(
        third["trajectory"]["outcome"], "success",
        "the last task has not started, so none is a straggler"
    );
    consumer.acknowledge(third).await;
    let last = consumer.take(1).await.remove(0);
    consumer.acknowledge(&last).await;
    assert_success(&mut webgym).await;
}
