//! Policy calls stop during a pause and browsers stay; a forgotten pause ends by itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use proto::trajectory::Outcome;
use serde_json::Value;
use testkit::{
    eventually,
    sim_farm::SimFarmOptions,
    sim_model::{ModelReply, ModelRequest},
};

use crate::harness::{LIMIT, StreamTest, answer_at_second_step, assert_success};

fn many_steps(request: &ModelRequest) -> ModelReply {
    let text = |reply: ModelReply| match reply {
        ModelReply::Reply(text) => ModelReply::Delayed(Duration::from_millis(40), text),
        other => other,
    };
    text(if request.step() > 6 { ModelReply::answer("42") } else { ModelReply::click(500, 500) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_stops_policy_calls_and_keeps_browsers() {
    let test = StreamTest::new(4, SimFarmOptions::default(), many_steps).await;
    let (mut webgym, consumer) =
        test.start(&["env_config.stream_linger=0", "env_config.monitor_port=0"]).await;
    let monitor = testkit::Http::new(&webgym.monitor_url().await, None);
    eventually("all episodes act", LIMIT, async || test.policy.count() >= 8).await;
    let paused = consumer.http.post("/pause", &[("wait", "true")]).await.ok();
    assert_eq!((&paused["is_paused"], &paused["policy_calls_in_flight"]), (&true.into(), &0.into()));
    let left = paused["pause_seconds_left"].as_f64().unwrap();
    assert!(left > 200.0 && left <= 300.0, "{left}");
    let (calls, leases) = (test.policy.count(), test.farm.active_leases());
    assert_eq!(leases.len(), 4);
    let hold = |status: &Value| status["hold"].as_str().is_some_and(|text| text.contains("paused"));
    assert!(hold(&monitor.get("/status", &[]).await.ok()));
    // Long enough for each episode to make several steps.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(test.policy.count(), calls, "no call during the pause");
    assert_eq!(test.farm.active_leases().len(), 4);
    let again = consumer.http.post("/pause", &[("deadline", "60")]).await.ok();
    assert!(again["pause_seconds_left"].as_f64().unwrap() <= 60.0);
    assert_eq!(consumer.status().await["is_paused"], true);
    assert_eq!(consumer.http.post("/resume", &[]).await.ok()["was_paused"], true);
    assert_eq!(consumer.http.post("/resume", &[]).await.ok()["was_paused"], false);
    assert_success(&mut webgym).await;
    assert_eq!(test.farm.leases_granted(), 4, "no episode started again");
    let outcomes = test.iteration().summaries().iter().map(|one| one.outcome).collect::<Vec<_>>();
    assert_eq!(outcomes, vec![Some(Outcome::Success); 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgotten_pause_ends_with_a_warning() {
    let test = StreamTest::new(4, SimFarmOptions::default(), many_steps).await;
    let (mut webgym, consumer) = test.start(&["env_config.stream_linger=0"]).await;
    eventually("an episode acts", LIMIT, async || test.policy.count() >= 1).await;
    let paused = consumer.http.post_json("/pause", &[], &serde_json::json!({"deadline": 0.5})).await.ok();
    assert_eq!(paused["is_paused"], true);
    assert_success(&mut webgym).await;
    assert!(webgym.log().contains("there was no POST /resume"), "{}", webgym.log());
}

/// A server that loads weights may drop the calls that it has. They are made again after the pause, in the same episode.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_dropped_during_a_pause_are_made_again() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dropped);
    let policy = move |request: &ModelRequest| {
        if count.load(Ordering::SeqCst) < 4 {
            count.fetch_add(1, Ordering::SeqCst);
            return ModelReply::Never;
        }
        answer_at_second_step(request)
    };
    let test = StreamTest::new(4, SimFarmOptions::default(), policy).await;
    let more = [
        "env_config.stream_linger=0",
        "env_config.vllm_timeout=3",
        "env_config.max_retries=0",
        "env_config.max_infra_retries=0",
    ];
    let (mut webgym, consumer) = test.start(&more).await;
    eventually("all episodes ask", LIMIT, async || dropped.load(Ordering::SeqCst) == 4).await;
    let paused = consumer.http.post("/pause", &[]).await.ok();
    assert_eq!(paused["policy_calls_in_flight"], 4, "calls in progress go on");
    let idle = consumer.http.post("/pause", &[("wait", "true")]).await.ok();
    assert_eq!(idle["policy_calls_in_flight"], 0);
    consumer.http.post("/resume", &[]).await.ok();
    assert_success(&mut webgym).await;
    let outcomes = test.iteration().summaries().iter().map(|one| one.outcome).collect::<Vec<_>>();
    assert_eq!(outcomes, vec![Some(Outcome::Success); 4]);
    assert_eq!(test.farm.leases_granted(), 4, "the episodes kept their browsers");
}

/// The pause is longer than the time of a task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_of_tasks_does_not_run_during_a_pause() {
    let test = StreamTest::new(1, SimFarmOptions::default(), answer_at_second_step).await;
    let more = ["env_config.stream_linger=0", "env_config.task_timeout_minutes=0.15"];
    let (mut webgym, consumer) = test.start(&more).await;
    consumer.http.post("/pause", &[("deadline", "10")]).await.ok();
    assert_success(&mut webgym).await;
    assert_eq!(test.iteration().summaries()[0].outcome, Some(Outcome::Success));
    assert!(webgym.log().contains("there was no POST /resume"), "{}", webgym.log());
}
