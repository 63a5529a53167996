//! Whole runs whose policy or judge is a server that breaks every rule: an episode is lost or left unjudged and says
//! why, a run goes on or stops in words, and none of it ever counts as a failed task.

use std::time::Duration;

use futures_util::future::join_all;
use proto::trajectory::Outcome;
use rollout::{
    judge::{
        Judge,
        rejudge::{RejudgeOptions, rejudge},
    },
    run::RunError,
};
use serde_json::json;
use store::IterationFile;
use testkit::{
    rogue::{RogueReply, RogueServer, head},
    sim_farm::Fault,
    sim_model::{ModelReply, SimModel},
};

use crate::harness::{
    Bench, assert_cut_short, clicks_then_answers, ending, model_judge, outcome, task, tasks, words,
};

/// Everything a server may do wrong, and what is said about it.
fn wrongs() -> Vec<(RogueReply, &'static str)> {
    let json = "content-type: application/json";
    let long = json!({"choices": [{"message": {"content": "so ".repeat(3 << 20)}}]}).to_string();
    let half = [head("200 OK", &[json, "content-length: 1000"]), b"{\"choices\":".to_vec()].concat();
    let again = format!("1000\r\n{}\r\n", " ".repeat(0x1000)).into_bytes();
    vec![
        (RogueReply::Endless(head("200 OK", &["transfer-encoding: chunked"]), again), "larger than"),
        (RogueReply::Drip(head("200 OK", &[json]), Duration::from_millis(100)), "no time left"),
        (RogueReply::Reset(half), "cannot be reached"),
        (RogueReply::http("200 OK", &[json], ""), "it is empty"),
        (RogueReply::http("200 OK", &[json], "{\"choices\":[]}"), "no choices"),
        (RogueReply::http("200 OK", &[json], "{\"choices\":[{"), "not JSON"),
        (RogueReply::http("200 OK", &[json], long), "larger than"),
        (
            RogueReply::http("200 OK", &["content-type: text/html"], "<h1>Sign in</h1>"),
            "text/html): <h1>Sign in",
        ),
        (RogueReply::http("200 OK", &["content-encoding: gzip"], "\u{1f}\u{8b}"), "packed (gzip)"),
        (RogueReply::http("307 Elsewhere", &["location: http://else.test/"], ""), "http://else.test/"),
        (RogueReply::http("500 Oops", &[], "no GPU"), "500: no GPU"),
        (RogueReply::http("503 Busy", &["retry-after: 9999999"], ""), "come back in 9999999 s"),
        (RogueReply::http("429 Slow down", &["retry-after: 1e12"], ""), "come back in 1000000000000 s"),
    ]
}

/// A run whose policy is this server, with little patience.
async fn with_policy(rogue: &RogueServer) -> Bench {
    let mut bench = Bench::faulty(|_| Fault::None, |_| ModelReply::Never).await;
    bench.policy_url = Some(rogue.url());
    bench.limits.max_infra_retries = 1;
    bench.attempt_timeout = Duration::from_secs(2);
    bench
}

#[tokio::test]
async fn faulty_policy_server_loses_episode_with_reason() {
    join_all(wrongs().into_iter().map(|(wrong, named)| async move {
        let rogue = RogueServer::start(move |_, _| wrong.clone()).await;
        let mut bench = with_policy(&rogue).await;
        let trajectory = bench.run_one(task(0)).await;
        assert_cut_short(&trajectory, 0);
        assert_eq!(outcome(&trajectory), Outcome::InfraLost, "{named}");
        let why = ending(&trajectory);
        assert!(why.starts_with("policy lost: ") && why.contains(named), "{named}: {why}");
        assert_eq!(bench.farm.leases_granted(), 2, "{named}: tried afresh once");
        assert!(bench.farm.active_leases().is_empty(), "{named}");
        let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
        assert_eq!((metrics.infra_lost, metrics.scored), (1, 0), "{named}: never a failed task");
    }))
    .await;
}

#[tokio::test]
async fn policy_server_that_recovers_loses_no_episode() {
    join_all(wrongs().into_iter().map(|(wrong, named)| async move {
        let answer = r#"<tool_call>{"action": "answer", "text": "42"}</tool_call>"#;
        let rogue =
            RogueServer::start(
                move |before, _| if before == 0 { wrong.clone() } else { RogueReply::completion(answer) },
            )
            .await;
        let trajectory = with_policy(&rogue).await.run_one(task(0)).await;
        assert_eq!(outcome(&trajectory), Outcome::Success, "{named}");
    }))
    .await;
}

#[tokio::test]
async fn run_stops_with_reason_if_policy_always_fails() {
    let rogue = RogueServer::start(|_, _| {
        RogueReply::http("200 OK", &["content-type: text/html"], "<h1>Sign in</h1>")
    })
    .await;
    let mut bench = with_policy(&rogue).await;
    let left = bench.run(tasks(6)).await;
    let Err(RunError::NothingWorks { count, why }) = left.collected else { panic!("{:?}", left.collected) };
    assert_eq!((count, left.trajectories.len()), (6, 0), "nothing counts, all of it can be resumed");
    assert!(why.contains("text/html") && why.contains("Sign in"), "{why}");
}

#[tokio::test]
async fn policy_failure_on_one_task_does_not_affect_others() {
    let rogue = RogueServer::start(|_, body: &str| {
        if body.contains("find thing 2") {
            return RogueReply::http("500 Oops", &[], "index out of range");
        }
        RogueReply::completion(r#"<tool_call>{"action": "answer", "text": "42"}</tool_call>"#)
    })
    .await;
    let left = with_policy(&rogue).await.run(tasks(5)).await;
    assert_eq!(left.collected.unwrap().finished, 5);
    let outcomes: Vec<Outcome> = left.trajectories.iter().map(outcome).collect();
    assert_eq!(outcomes.iter().filter(|one| **one == Outcome::Success).count(), 4);
    assert_eq!(outcomes[2], Outcome::InfraLost);
}

/// Patience uses up no retry, so that the task's own time ends it.
#[tokio::test]
async fn endless_rate_limiting_is_not_a_failed_task() {
    let rogue = RogueServer::start(|_, _| RogueReply::http("429 Slow down", &[], "")).await;
    let mut bench = with_policy(&rogue).await;
    bench.limits.task_timeout = Duration::from_secs(1);
    let trajectory = bench.run_one(task(0)).await;
    assert!(
        matches!(outcome(&trajectory), Outcome::InfraLost | Outcome::Cancelled),
        "{}",
        ending(&trajectory)
    );
    let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
    assert!(metrics.scored == 0 && rogue.request_count() > 3, "{}", ending(&trajectory));
}

fn impatient(url: &str) -> Judge {
    let Judge::Model(judge) = model_judge(url, |_| {}) else { panic!("a judge with a model") };
    Judge::Model(Box::new(judge.with_question_timeout(Duration::from_secs(5))))
}

#[tokio::test]
async fn faulty_judge_leaves_episode_unjudged_until_rejudged() {
    let good = SimModel::start(|question| {
        ModelReply::Reply(
            if question.text.contains("Blocked: YES") { "Blocked: NO" } else { "YES\nVerdict: SUCCESS" }
                .into(),
        )
    })
    .await;
    let good = model_judge(&good.url(), |_| {});
    join_all(wrongs().into_iter().map(|(wrong, named)| {
        let good = &good;
        async move {
            let rogue = RogueServer::start(move |_, _| wrong.clone()).await;
            let mut bench = Bench::faulty(|_| Fault::None, clicks_then_answers(2)).await;
            bench.judge = impatient(&rogue.url());
            let trajectory = bench.run_one(task(0)).await;
            assert_eq!((outcome(&trajectory), trajectory.steps.len()), (Outcome::JudgeError, 2), "{named}");
            let told = words(&trajectory).join("\n");
            assert!(told.contains("Not judged: ") && told.contains(named), "{named}: {told}");
            let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
            assert_eq!((metrics.judge_errors, metrics.scored), (1, 0), "{named}");
            store::finish_iteration(&bench.save_path(), bench.id()).unwrap();
            let what = RejudgeOptions { only_unjudged: true, iteration: None, split: None, concurrency: 1 };
            rejudge(&bench.save_path(), good, &what).await.unwrap();
            let file = IterationFile::open(&bench.save_path().iteration_file(bench.id())).unwrap();
            assert_eq!(file.summaries()[0].outcome, Some(Outcome::Success), "{named}");
        }
    }))
    .await;
}
