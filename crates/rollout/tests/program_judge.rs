//! `judge=program` on pages that the tests describe: every kind of check, its failures, and commands.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use futures_util::future::BoxFuture;
use proto::trajectory::{Evaluation, Outcome, Step, Task, Trajectory, TrajectoryMetadata};
use rollout::{
    config::ProgramConfig,
    judge::{
        Judge, ProgramJudge, Verdict,
        program::{JudgedEpisode, JudgedPage, ProgramError},
    },
};
use serde_json::{Value, json};

/// A page whose scripts all have the same value.
struct FakePage {
    url: &'static str,
    text: &'static str,
    value: Result<Value, &'static str>,
}

impl JudgedPage for FakePage {
    fn url(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { Ok(self.url.to_owned()) })
    }

    fn text(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { Ok(self.text.to_owned()) })
    }

    fn evaluate<'a>(&'a self, expression: &'a str) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            assert!(expression.contains("window.score"), "{expression}");
            self.value.clone().map_err(str::to_owned)
        })
    }

    fn cdp_url(&self) -> Option<&str> {
        Some("http://farm.test/cdp/secret")
    }
}

fn page() -> FakePage {
    FakePage { url: "http://shop.test/orders/7", text: "Thank you!\nOrder  placed", value: Ok(json!(0.25)) }
}

fn config() -> ProgramConfig {
    ProgramConfig { command: None, timeout: 30.0, allow_task_commands: false }
}

fn task(judge: &Value) -> Task {
    let mut task = Task { task_name: "order a lamp".into(), ..Task::default() };
    if !judge.is_null() {
        task.extra.insert("judge".into(), judge.clone());
    }
    task
}

async fn judge_with(config: &ProgramConfig, judge: &Value, answer: Option<&str>, page: &FakePage) -> Verdict {
    let task = task(judge);
    let episode = JudgedEpisode { task: &task, answer, steps: &[], folder: None };
    ProgramJudge::new(config).judge(&episode, page).await
}

fn reason(verdict: &Verdict) -> &str {
    match &verdict.evaluation {
        Evaluation::Text(text) => text,
        Evaluation::Texts(texts) => &texts[0],
    }
}

#[tokio::test]
async fn every_check_scores_the_end_of_an_episode() {
    let cases = [
        (json!({"url": "http://shop.test/orders/*"}), None, 1.0),
        (json!({"url": ["http://shop.test/cart", "http://shop.test/orders/7/"]}), None, 1.0),
        (json!({"url": "http://shop.test/cart"}), None, 0.0),
        (json!({"text": "order placed"}), None, 1.0),
        (json!({"text": ["order placed", "refunded"]}), None, 0.0),
        (json!({"javascript": "window.score"}), None, 0.25),
        (json!({"answer": "$12"}), Some("It costs 12 dollars."), 1.0),
        (json!({"answer": ["12", "blue"]}), Some("12"), 0.0),
        (json!({"answer": "12"}), None, 0.0),
        (json!({"answer": "12", "url": "http://shop.test/orders/*"}), Some("12"), 1.0),
        (json!({"answer": "12", "javascript": "window.score"}), Some("12"), 0.25),
    ];
    for (judge, answer, score) in cases {
        let verdict = judge_with(&config(), &judge, answer, &page()).await;
        let outcome = if score > 0.99 { Outcome::Success } else { Outcome::Failure };
        assert_eq!((verdict.score, verdict.outcome), (Some(score), outcome), "{judge}: {}", reason(&verdict));
    }
}

#[tokio::test]
async fn check_that_cannot_be_made_leaves_the_episode_unjudged() {
    let script = json!({"javascript": "window.score"});
    let cases = [
        (script.clone(), Err("the page is gone"), "javascript: the page is gone"),
        (script.clone(), Ok(json!(1.5)), "from 0 to 1, not 1.5"),
        (script.clone(), Ok(json!(-1)), "from 0 to 1, not -1"),
        (script.clone(), Ok(json!("NaN")), "from 0 to 1, not \"NaN\""),
        (script, Ok(Value::Null), "from 0 to 1, not null"),
        (json!({"unsupported": "it needs the network log"}), Ok(json!(1)), "it needs the network log"),
        (json!({"script": "x"}), Ok(json!(1)), "judge.script is not a check"),
        (json!({"command": ["true"]}), Ok(json!(1)), "allow_task_commands is not set"),
        (Value::Null, Ok(json!(1)), "the task has no judge field, and program_config.command is not set"),
    ];
    for (judge, value, expected) in cases {
        let verdict = judge_with(&config(), &judge, Some("x"), &FakePage { value, ..page() }).await;
        assert_eq!((verdict.outcome, verdict.score), (Outcome::JudgeError, None), "{judge}");
        assert!(reason(&verdict).contains(expected), "{}", reason(&verdict));
    }
}

#[tokio::test]
async fn every_judge_scores_an_open_page() {
    let mut with_reference = task(&json!({"url": "http://shop.test/orders/*"}));
    with_reference.reference_answer = Some("12".into());
    let episode = JudgedEpisode { task: &with_reference, answer: Some("13"), steps: &[], folder: None };
    let cases = [
        (Judge::Program(ProgramJudge::new(&config())), Outcome::Success),
        (Judge::Reference, Outcome::Failure),
        (Judge::None, Outcome::JudgeError),
    ];
    for (judge, outcome) in cases {
        assert_eq!(judge.judge_open(&episode, &page()).await.outcome, outcome);
    }
}

fn command(script: &str) -> ProgramConfig {
    ProgramConfig { command: Some(["sh", "-c", script].map(str::to_owned).to_vec()), ..config() }
}

#[tokio::test]
async fn command_gets_the_episode_and_prints_the_reward() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen.json");
    let script = format!(
        r#"cat >{0}; cp "$(sed 's/.*"trajectory":"\([^"]*\)".*/\1/' {0})" {0}.steps; echo '{{"reward": 1, "reason": "found"}}'"#,
        seen.display()
    );
    let (task, steps) = (task(&Value::Null), [Step::default()]);
    let images = folder.path().join("images");
    std::fs::create_dir(&images).unwrap();
    let episode = JudgedEpisode { task: &task, answer: Some("12"), steps: &steps, folder: Some(&images) };
    let verdict = ProgramJudge::new(&command(&script)).judge(&episode, &page()).await;
    assert_eq!(verdict.outcome, Outcome::Success, "{}", reason(&verdict));
    assert!(reason(&verdict).contains("command: 1: found"), "{}", reason(&verdict));
    let given: Value = serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    assert_eq!(given["task"]["task_name"], "order a lamp");
    assert_eq!((&given["answer"], &given["url"]), (&json!("12"), &json!("http://shop.test/orders/7")));
    assert_eq!(given["cdp_url"], "http://farm.test/cdp/secret");
    let record: Value =
        serde_json::from_slice(&std::fs::read(format!("{}.steps", seen.display())).unwrap()).unwrap();
    assert_eq!(record["steps"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_dir(&images).unwrap().count(), 0, "the trajectory file is removed");
}

#[tokio::test]
async fn failed_command_leaves_the_episode_unjudged() {
    let cases = [
        ("echo broken >&2; exit 1", "failed (exit status: 1): broken"),
        ("echo hello", "printed no JSON: hello"),
        (r#"echo '{"score": 1}'"#, "printed no \"reward\""),
        ("echo 7", "from 0 to 1, not 7"),
    ];
    for (script, expected) in cases {
        let verdict = judge_with(&command(script), &Value::Null, None, &page()).await;
        assert_eq!(verdict.outcome, Outcome::JudgeError, "{script}");
        assert!(reason(&verdict).contains(expected), "{}", reason(&verdict));
    }
    let slow = ProgramConfig { timeout: 0.2, ..command("sleep 600") };
    let verdict = judge_with(&slow, &Value::Null, None, &page()).await;
    assert_eq!(verdict.outcome, Outcome::JudgeError);
    assert!(reason(&verdict).contains("within 0.2 s"), "{}", reason(&verdict));
}

#[test]
fn tasks_are_checked_before_a_run() {
    let judge = ProgramJudge::new(&config());
    let tasks =
        [json!({"url": "http://a.test"}), Value::Null, json!({"unsupported": "x"})].map(|judge| task(&judge));
    assert_eq!(judge.check_tasks(&tasks), Ok(1));
    assert_eq!(ProgramJudge::new(&command("true")).check_tasks(&tasks), Ok(2));
    let with_command = [task(&json!({"command": ["true"]}))];
    let refused = judge.check_tasks(&with_command).unwrap_err();
    assert_eq!(refused, ProgramError::CommandNotAllowed { task: "order a lamp".into() });
    assert!(refused.to_string().contains("allow_task_commands=true"), "{refused}");
    let allowing = ProgramJudge::new(&ProgramConfig { allow_task_commands: true, ..config() });
    assert_eq!(allowing.check_tasks(&with_command), Ok(1));
}

#[test]
fn saved_trajectory_is_judged_by_its_answer_only() {
    let answered = json!({"action": {"key": "answer", "arguments": {"content": "12"}, "action_string": ""}});
    let step = |action: &Value| {
        let mut step = serde_json::to_value(Step::default()).unwrap();
        step["action"] = action["action"].clone();
        serde_json::from_value(step).unwrap()
    };
    let trajectory = |judge: &Value| Trajectory {
        task: task(judge),
        steps: vec![step(&answered)],
        metadata: TrajectoryMetadata::default(),
    };
    let judge = ProgramJudge::new(&config());
    let mut judged = trajectory(&json!({"answer": "12"}));
    judge.judge_saved(&judged).apply(&mut judged);
    assert_eq!(judged.metadata.outcome, Some(Outcome::Success));
    assert_eq!(judged.metadata.extra["score"], 1.0);
    for other in [json!({"answer": "12", "url": "http://shop.test/*"}), Value::Null] {
        assert_eq!(judge.judge_saved(&trajectory(&other)).outcome, Outcome::JudgeError);
    }
}
