//! Whole runs with a policy or judge server that violates the protocol: the episode is lost or stays unjudged with a
//! reason, the run continues or stops with a message, and nothing counts as a failed task.

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
    Harness, assert_ended_early, clicks_then_answers, ending, evaluation_texts, model_judge, outcome, task,
    tasks,
};

/// Returns the faults of a server, each with a part of the expected error message.
fn server_faults() -> Vec<(RogueReply, &'static str)> {
    let json = "content-type: application/json";
    let long = json!({"choices": [{"message": {"content": "so ".repeat(3 << 20)}}]}).to_string();
    let half = [head("200 OK", &[json, "content-length: 1000"]), b"{\"choices\":".to_vec()].concat();
    let again = format!("1000\r\n{}\r\n", " ".repeat(0x1000)).into_bytes();
    vec![
        (RogueReply::Endless(head("200 OK", &["transfer-encoding: chunked"]), again), "larger than"),
        (RogueReply::Drip(head("200 OK", &[json]), Duration::from_millis(100)), "timed out while"),
        (RogueReply::Reset(half), "cannot be reached"),
        (RogueReply::http("200 OK", &[json], ""), "it is empty"),
        (RogueReply::http("200 OK", &[json], "{\"choices\":[]}"), "no choices"),
        (RogueReply::http("200 OK", &[json], "{\"choices\":[{"), "not JSON"),
        (RogueReply::http("200 OK", &[json], long), "larger than"),
        (
            RogueReply::http("200 OK", &["content-type: text/html"], "<h1>Sign in</h1>"),
            "text/html): <h1>Sign in",
        ),
        (RogueReply::http("200 OK", &["content-encoding: gzip"], "\u{1f}\u{8b}"), "compressed (gzip)"),
        (RogueReply::http("307 Elsewhere", &["location: http://else.test/"], ""), "http://else.test/"),
        (RogueReply::http("500 Oops", &[], "no GPU"), "500: no GPU"),
        (RogueReply::http("503 Busy", &["retry-after: 9999999"], ""), "come back in 9999999 s"),
        (RogueReply::http("429 Slow down", &["retry-after: 1e12"], ""), "come back in 1000000000000 s"),
    ]
}

/// Creates a run with this server as the policy, one retry and a short timeout.
async fn with_policy(rogue: &RogueServer) -> Harness {
    let mut harness = Harness::faulty(|_| Fault::None, |_| ModelReply::Never).await;
    harness.policy_url = Some(rogue.url());
    harness.limits.max_infra_retries = 1;
    harness.attempt_timeout = Duration::from_secs(2);
    harness
}

#[tokio::test]
async fn faulty_policy_server_loses_episode_with_reason() {
    join_all(server_faults().into_iter().map(|(fault, expected)| async move {
        let rogue = RogueServer::start(move |_, _| fault.clone()).await;
        let mut harness = with_policy(&rogue).await;
        let trajectory = harness.run_one(task(0)).await;
        assert_ended_early(&trajectory, 0);
        assert_eq!(outcome(&trajectory), Outcome::InfraLost, "{expected}");
        let reason = ending(&trajectory);
        assert!(reason.starts_with("policy lost: ") && reason.contains(expected), "{expected}: {reason}");
        assert_eq!(harness.farm.leases_granted(), 2, "{expected}: one retry");
        assert!(harness.farm.active_leases().is_empty(), "{expected}");
        let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
        assert_eq!((metrics.infra_lost, metrics.scored), (1, 0), "{expected}: never a failed task");
    }))
    .await;
}

#[tokio::test]
async fn policy_server_that_recovers_loses_no_episode() {
    join_all(server_faults().into_iter().map(|(fault, expected)| async move {
        let answer = r#"<tool_call>{"action": "answer", "text": "42"}</tool_call>"#;
        let rogue =
            RogueServer::start(
                move |before, _| if before == 0 { fault.clone() } else { RogueReply::completion(answer) },
            )
            .await;
        let trajectory = with_policy(&rogue).await.run_one(task(0)).await;
        assert_eq!(outcome(&trajectory), Outcome::Success, "{expected}");
    }))
    .await;
}

#[tokio::test]
async fn run_stops_with_reason_if_policy_always_fails() {
    let rogue = RogueServer::start(|_, _| {
        RogueReply::http("200 OK", &["content-type: text/html"], "<h1>Sign in</h1>")
    })
    .await;
    let mut harness = with_policy(&rogue).await;
    let result = harness.run(tasks(6)).await;
    let Err(RunError::AllEpisodesLost { count, reason }) = result.collected else {
        panic!("{:?}", result.collected)
    };
    assert_eq!((count, result.trajectories.len()), (6, 0), "nothing is saved, so the run can be resumed");
    assert!(reason.contains("text/html") && reason.contains("Sign in"), "{reason}");
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
    let result = with_policy(&rogue).await.run(tasks(5)).await;
    assert_eq!(result.collected.unwrap().finished, 5);
    let outcomes: Vec<Outcome> = result.trajectories.iter().map(outcome).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Success).count(), 4);
    assert_eq!(outcomes[2], Outcome::InfraLost);
}

/// Waiting because of a rate limit uses up no retry, so the task's timeout ends the episode.
#[tokio::test]
async fn endless_rate_limiting_is_not_a_failed_task() {
    let rogue = RogueServer::start(|_, _| RogueReply::http("429 Slow down", &[], "")).await;
    let mut harness = with_policy(&rogue).await;
    harness.limits.task_timeout = Duration::from_secs(1);
    let trajectory = harness.run_one(task(0)).await;
    assert!(
        matches!(outcome(&trajectory), Outcome::InfraLost | Outcome::Cancelled),
        "{}",
        ending(&trajectory)
    );
    let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
    assert!(metrics.scored == 0 && rogue.request_count() > 3, "{}", ending(&trajectory));
}

fn judge_with_short_timeout(url: &str) -> Judge {
    let Judge::Model(judge) = model_judge(url, |_| {}) else { panic!("a judge with a model") };
    Judge::Model(Box::new(judge.with_question_timeout(Duration::from_secs(5))))
}

#[tokio::test]
async fn faulty_judge_leaves_episode_unjudged_until_rejudged() {
    let passing = SimModel::start(|question| {
        ModelReply::Reply(
            if question.text.contains("Blocked: YES") { "Blocked: NO" } else { "YES\nVerdict: SUCCESS" }
                .into(),
        )
    })
    .await;
    let passing = model_judge(&passing.url(), |_| {});
    join_all(server_faults().into_iter().map(|(fault, expected)| {
        let passing = &passing;
        async move {
            let rogue = RogueServer::start(move |_, _| fault.clone()).await;
            let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(2)).await;
            harness.judge = judge_with_short_timeout(&rogue.url());
            let trajectory = harness.run_one(task(0)).await;
            assert_eq!(
                (outcome(&trajectory), trajectory.steps.len()),
                (Outcome::JudgeError, 2),
                "{expected}"
            );
            let text = evaluation_texts(&trajectory).join("\n");
            assert!(text.contains("Not judged: ") && text.contains(expected), "{expected}: {text}");
            let metrics = store::metrics::Metrics::of([&store::Summary::of(&trajectory)]);
            assert_eq!((metrics.judge_errors, metrics.scored), (1, 0), "{expected}");
            store::finish_iteration(&harness.save_path(), harness.id()).unwrap();
            let what = RejudgeOptions { only_unjudged: true, iteration: None, split: None, concurrency: 1 };
            rejudge(&harness.save_path(), passing, &what).await.unwrap();
            let file = IterationFile::open(&harness.save_path().iteration_file(harness.id())).unwrap();
            assert_eq!(file.summaries()[0].outcome, Some(Outcome::Success), "{expected}");
        }
    }))
    .await;
}
