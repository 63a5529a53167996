//! Judging during a run: it holds no browser, and an outage of the judge loses no trajectory.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proto::trajectory::Outcome;
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::{ModelReply, ModelRequest, SimModel},
};

use crate::harness::{Harness, clicks_then_answers, evaluation_texts, outcome, task, tasks};

fn passing_judge(question: &ModelRequest) -> ModelReply {
    ModelReply::Reply(
        if question.text.contains("Blocked: YES") { "Blocked: NO" } else { "YES\nVerdict: SUCCESS" }.into(),
    )
}

#[tokio::test]
async fn browser_is_released_before_judging() {
    let mut harness = Harness::new(SimFarmOptions::default(), clicks_then_answers(2)).await;
    let leased = harness.farm.lease_counter();
    let max_leased = Arc::new(AtomicUsize::new(0));
    let record = Arc::clone(&max_leased);
    let judge = SimModel::start(move |question| {
        record.fetch_max(leased(), Ordering::SeqCst);
        passing_judge(question)
    })
    .await;
    harness.judge_at(&judge.url());
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), judge.count() > 0), (Outcome::Success, true));
    assert_eq!(max_leased.load(Ordering::SeqCst), 0, "the browser is released before the judge is asked");
}

#[tokio::test]
async fn judge_outage_loses_no_trajectory() {
    let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(2)).await;
    harness.judge_at(&closed_port_url().await);
    let result = harness.run(tasks(4)).await;
    assert_eq!((result.collected.unwrap().finished, result.trajectories.len()), (4, 4));
    for trajectory in &result.trajectories {
        assert_eq!((outcome(trajectory), trajectory.steps.len()), (Outcome::JudgeError, 2));
        assert_eq!(trajectory.steps[1].reward.reward, 0);
        assert!(
            evaluation_texts(trajectory)[0].starts_with("Not judged: "),
            "{:?}",
            evaluation_texts(trajectory)
        );
    }
    let summaries: Vec<store::Summary> = result.trajectories.iter().map(store::Summary::of).collect();
    let metrics = store::metrics::Metrics::of(&summaries);
    assert_eq!((metrics.judge_errors, metrics.scored), (4, 0));
}

#[tokio::test]
async fn episode_lost_to_infrastructure_is_not_judged() {
    let judge = SimModel::start(passing_judge).await;
    let mut harness = Harness::faulty(
        |call| if call.runs("click_coords") { Fault::InstanceLost } else { Fault::None },
        clicks_then_answers(2),
    )
    .await;
    harness.limits.max_infra_retries = 0;
    harness.judge_at(&judge.url());
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!((outcome(&trajectory), judge.count()), (Outcome::InfraLost, 0));
}

#[tokio::test]
async fn blocked_site_is_added_to_blocklist_with_screenshot() {
    let judge = SimModel::start(|question| {
        ModelReply::Reply(
            if question.text.contains("Blocked: YES") {
                "A captcha.\nBlocked: YES"
            } else {
                "Verdict: NOT SUCCESS\nNO"
            }
            .into(),
        )
    })
    .await;
    let mut harness = Harness::faulty(
        |_| Fault::None,
        |question| match question.step() {
            1 => ModelReply::navigate("https://www.Wall.test/captcha"),
            _ => ModelReply::answer("I was kept out"),
        },
    )
    .await;
    harness.judge_at(&judge.url());
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(outcome(&trajectory), Outcome::Blocked);
    let text = std::fs::read_to_string(harness.root().join("blocklist.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(line["domain"], "shop.test", "the website of the task");
    assert_eq!(line["task_id"], "t0");
    assert_eq!(line["screenshot_path"], trajectory.steps[1].observation.image_path.as_str());
    let (list, _) =
        rollout::plan::blocklist::Blocklist::read(harness.root(), jiff::Timestamp::now()).unwrap();
    assert!(list.is_blocked("shop.test") && !list.is_blocked("wall.test"));
}

/// Returns an address at which no server listens.
pub(crate) async fn closed_port_url() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
