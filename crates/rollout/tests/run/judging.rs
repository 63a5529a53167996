//! Judging beside a run: what a judge costs it, and what a judge that is away does not.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proto::trajectory::Outcome;
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

use crate::harness::{Bench, clicks_then_answers, outcome, task, tasks, words};

fn friendly(question: &ModelRequest) -> ModelReply {
    ModelReply::Reply(
        if question.text.contains("Blocked: YES") { "Blocked: NO" } else { "YES\nVerdict: SUCCESS" }.into(),
    )
}

#[tokio::test]
async fn browser_is_released_before_judging() {
    let mut bench = Bench::new(SimFarmOptions::default(), clicks_then_answers(2)).await;
    let leased = bench.farm.lease_counter();
    let held = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&held);
    let judge = SimModel::start(move |question| {
        seen.fetch_max(leased(), Ordering::SeqCst);
        friendly(question)
    })
    .await;
    bench.judge_at(&judge.url());
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), judge.count() > 0), (Outcome::Success, true));
    assert_eq!(held.load(Ordering::SeqCst), 0, "the browser was given back before the judge was asked");
}

#[tokio::test]
async fn judge_outage_loses_no_trajectory() {
    let mut bench = Bench::faulty(|_| Fault::None, clicks_then_answers(2)).await;
    bench.judge_at(&nobody().await);
    let left = bench.run(tasks(4)).await;
    assert_eq!((left.collected.unwrap().finished, left.trajectories.len()), (4, 4));
    for trajectory in &left.trajectories {
        assert_eq!((outcome(trajectory), trajectory.steps.len()), (Outcome::JudgeError, 2));
        assert_eq!(trajectory.steps[1].reward.reward, 0);
        assert!(words(trajectory)[0].starts_with("Not judged: "), "{:?}", words(trajectory));
    }
    let summaries: Vec<store::Summary> = left.trajectories.iter().map(store::Summary::of).collect();
    let metrics = store::metrics::Metrics::of(&summaries);
    assert_eq!((metrics.judge_errors, metrics.scored), (4, 0));
}

#[tokio::test]
async fn episode_lost_to_infrastructure_is_not_judged() {
    let judge = SimModel::start(friendly).await;
    let mut bench = Bench::faulty(
        |call| if call.runs("click_coords") { Fault::InstanceLost } else { Fault::None },
        clicks_then_answers(2),
    )
    .await;
    bench.limits.max_infra_retries = 0;
    bench.judge_at(&judge.url());
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), judge.count()), (Outcome::InfraLost, 0));
}

#[tokio::test]
async fn blocked_site_is_added_to_blocklist_with_screenshot() {
    let judge = SimModel::start(|question| {
        ModelReply::Reply(
            if question.text.contains("Blocked: YES") { "A captcha.\nBlocked: YES" } else { "NO" }.into(),
        )
    })
    .await;
    let mut bench = Bench::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::navigate("https://www.Wall.test/captcha"),
            _ => ModelReply::answer("I was kept out"),
        },
    )
    .await;
    bench.judge_at(&judge.url());
    let trajectory = bench.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Blocked);
    let text = std::fs::read_to_string(bench.root().join("blocklist.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(line["domain"], "wall.test");
    assert_eq!(line["task_id"], "t0");
    assert_eq!(line["screenshot_path"], trajectory.steps[1].observation.image_path.as_str());
    let (list, _) = rollout::plan::blocklist::Blocklist::read(bench.root(), jiff::Timestamp::now()).unwrap();
    assert!(list.is_blocked("wall.test"));
}

/// An address where nobody listens.
pub(crate) async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
