//! The judge, question by question, against a scripted judge server: every branch of the section "Judge and rewards" of docs/contract.md.

use std::time::Duration;

use proto::trajectory::{
    Action, Observation, Outcome, Response, Reward, RubricItem, Step, StepExtras, Trajectory,
};
use rollout::judge::{Judge, Verdict};
use testkit::sim_model::{ModelReply, ModelRequest, SimModel};

use crate::harness::{model_judge, task};

const YES: &str = "It shows the thing.\nYES";
const NOT_BLOCKED: &str = "Nothing in the way.\nBlocked: NO";
pub(crate) const PASSED: &str = "All there.\nVerdict: SUCCESS";
const FAILED: &str = "Not there.\nVerdict: NOT SUCCESS";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Keypoint,
    Blocking,
    Supported,
    Item,
    Reference,
}

pub(crate) fn kind(question: &ModelRequest) -> Kind {
    let contains = |phrase: &str| question.text.contains(phrase);
    match () {
        () if contains("only YES or NO") => Kind::Keypoint,
        () if contains("Blocked: YES") => Kind::Blocking,
        () if contains("One requirement of the task") => Kind::Item,
        () if contains("Reference answer: ") => Kind::Reference,
        () => Kind::Supported,
    }
}

/// Creates a judge that gives every question the passing reply, except where `except` returns another one.
pub(crate) fn pass_except(
    except: impl Fn(Kind, &ModelRequest) -> Option<ModelReply>,
) -> impl Fn(&ModelRequest) -> ModelReply {
    move |question| {
        let kind = kind(question);
        except(kind, question).unwrap_or_else(|| {
            ModelReply::Reply(
                match kind {
                    Kind::Keypoint => YES,
                    Kind::Blocking => NOT_BLOCKED,
                    _ => PASSED,
                }
                .to_owned(),
            )
        })
    }
}

fn reply(text: &str) -> ModelReply {
    ModelReply::Reply(text.to_owned())
}

/// Creates an episode with this many steps and screenshots on disk, which ends with the action `last`.
pub(crate) fn episode(folder: &std::path::Path, steps: usize, last: &str) -> Trajectory {
    let step = |number: usize| {
        let image = folder.join(format!("{number}.png"));
        std::fs::write(&image, format!("\u{89}PNG{number}")).unwrap();
        let key = if number + 1 == steps { last } else { "click" };
        let arguments = serde_json::Map::from_iter([("content".to_owned(), "the answer is 42".into())]);
        Step {
            observation: Observation {
                image_path: image.display().to_string(),
                ac_tree: None,
                title: format!("page {number}"),
                url: format!("http://www.site{number}.test/x"),
            },
            action: Some(Action { key: key.into(), arguments, action_string: format!("{key} {number}") }),
            response: Response::default(),
            reward: Reward::default(),
            same_as_next_screenshot: None,
            extras: StepExtras::default(),
        }
    };
    let metadata = proto::trajectory::TrajectoryMetadata::default();
    let item = |text: &str| RubricItem { description: text.into(), difficulty: 1 };
    let mut task = task(0);
    task.evaluator_reference = vec![item("first thing"), item("second thing"), item("third thing")];
    Trajectory { task, steps: (0..steps).map(step).collect(), metadata }
}

pub(crate) struct JudgedEpisode {
    pub(crate) trajectory: Trajectory,
    verdict: Verdict,
    questions: Vec<ModelRequest>,
    max_concurrent: usize,
}

impl JudgedEpisode {
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.questions.iter().map(kind).filter(|kind| *kind != Kind::Keypoint).collect()
    }

    pub(crate) fn evaluation_texts(&self) -> String {
        format!("{:?}", self.verdict.evaluation)
    }

    fn submitted(&self) -> Vec<i64> {
        self.trajectory.metadata.keypoint_step_ids.clone()
    }
}

pub(crate) async fn judged(
    steps: usize,
    last: &str,
    reply_to: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
) -> JudgedEpisode {
    let server = SimModel::start(reply_to).await;
    let judge = model_judge(&server.url(), |_| {});
    judged_by(&judge, &server, steps, last).await
}

async fn judged_by(judge: &Judge, server: &SimModel, steps: usize, last: &str) -> JudgedEpisode {
    let folder = tempfile::tempdir().unwrap();
    let mut trajectory = episode(folder.path(), steps, last);
    let verdict = judge.judge(&trajectory).await;
    verdict.clone().apply(&mut trajectory);
    JudgedEpisode {
        trajectory,
        verdict,
        questions: server.requests(),
        max_concurrent: server.max_concurrent(),
    }
}

pub(crate) fn reward(judged: &JudgedEpisode) -> (Outcome, i64) {
    (judged.trajectory.metadata.outcome.unwrap(), judged.trajectory.steps.last().unwrap().reward.reward)
}

#[tokio::test]
async fn passing_every_question_gives_reward_one() {
    let judged = judged(3, "answer", pass_except(|_, _| None)).await;
    assert_eq!(reward(&judged), (Outcome::Success, 1));
    let wanted = [Kind::Blocking, Kind::Supported, Kind::Item, Kind::Item, Kind::Item, Kind::Reference];
    assert_eq!(judged.kinds(), wanted);
    let texts = judged.evaluation_texts();
    for part in [
        "[Blocking] ",
        "[Criterion B - Anti-Hallucination] ",
        "[Criterion A - Fact 1] ",
        "[Criterion A - Fact 3] ",
        "[Reference Answer Evaluation] ",
    ] {
        assert!(texts.contains(part), "{part} in {texts}");
    }
}

#[tokio::test]
async fn keypoint_questions_run_concurrently() {
    let judged = judged(
        9,
        "answer",
        pass_except(|kind, question| {
            let even = question.text.contains("Screenshot of step 1:")
                || question.text.contains("Screenshot of step 5:");
            match kind {
                Kind::Keypoint if even => Some(ModelReply::Delayed(Duration::from_millis(50), YES.into())),
                Kind::Keypoint => Some(ModelReply::Delayed(Duration::from_millis(50), "Nothing.\nNO".into())),
                _ => None,
            }
        }),
    )
    .await;
    assert_eq!(judged.questions.iter().filter(|question| kind(question) == Kind::Keypoint).count(), 8);
    assert!(judged.max_concurrent > 1, "{} at once", judged.max_concurrent);
    assert_eq!(judged.submitted(), [0, 4, 8]);
    let steps = &judged.trajectory.steps;
    assert!(steps[0].reward.submit && !steps[1].reward.submit && steps[8].reward.submit);
    assert_eq!(steps[1].reward.submission_judgment.as_deref(), Some("Nothing.\nNO"));
    let supported = judged.questions.iter().find(|question| kind(question) == Kind::Supported).unwrap();
    assert_eq!(supported.images.len(), 3, "only submitted screenshots are sent");
    assert!(supported.images[0].starts_with("data:image/png;base64,"));
}

#[tokio::test]
async fn only_the_last_48_screenshots_are_submitted() {
    let judged = judged(60, "answer", pass_except(|_, _| None)).await;
    assert_eq!(judged.submitted(), (12..60).collect::<Vec<i64>>());
    let of = |wanted| judged.questions.iter().find(|question| kind(question) == wanted).unwrap().images.len();
    assert_eq!((of(Kind::Supported), of(Kind::Blocking)), (48, 20));
}

#[tokio::test]
async fn evaluation_workers_bound_concurrent_questions() {
    let server =
        SimModel::start(pass_except(|_, _| Some(ModelReply::Delayed(Duration::from_millis(20), YES.into()))))
            .await;
    let judge = model_judge(&server.url(), |config| config.env_config.evaluation_workers = 3);
    let folder = tempfile::tempdir().unwrap();
    let trajectory = episode(folder.path(), 8, "answer");
    tokio::join!(judge.judge(&trajectory), judge.judge(&trajectory), judge.judge(&trajectory));
    assert_eq!(server.max_concurrent(), 3);
}

const BLOCKED: &str = "A captcha.\nStep: 2\nBlocked: YES";

#[tokio::test]
async fn blocked_website_is_that_of_the_task() {
    let blocked = |kind, _: &ModelRequest| match kind {
        Kind::Blocking => Some(reply(BLOCKED)),
        Kind::Supported => Some(reply(FAILED)),
        _ => None,
    };
    for (last, questions) in
        [("answer", vec![Kind::Blocking, Kind::Supported]), ("click", vec![Kind::Blocking])]
    {
        let mut judged = judged(3, last, pass_except(blocked)).await;
        assert_eq!(reward(&judged), (Outcome::Blocked, 0));
        assert!(judged.trajectory.steps.last().unwrap().reward.is_blocked);
        assert_eq!(judged.kinds(), questions);
        judged.trajectory.task.website = "https://www.shop.example/start".into();
        let site = rollout::judge::blocked_site(&judged.verdict, &judged.trajectory).unwrap();
        assert_eq!(site.domain, "shop.example", "not the site of the page that blocked the agent");
        assert!(site.screenshot_path.unwrap().ends_with("/1.png"));
    }
}

#[tokio::test]
async fn agent_that_got_past_a_block_can_succeed() {
    let blocked = |kind, _: &ModelRequest| (kind == Kind::Blocking).then(|| reply(BLOCKED));
    let judged = judged(3, "answer", pass_except(blocked)).await;
    assert_eq!(reward(&judged), (Outcome::Success, 1));
    assert!(judged.trajectory.steps.last().unwrap().reward.is_blocked, "the block is recorded");
    assert_eq!(rollout::judge::blocked_site(&judged.verdict, &judged.trajectory), None);
}

#[tokio::test]
async fn blank_reference_is_not_asked_about() {
    let server = SimModel::start(pass_except(|_, _| None)).await;
    let judge = model_judge(&server.url(), |_| {});
    let folder = tempfile::tempdir().unwrap();
    for blank in ["", " \n"] {
        let mut trajectory = episode(folder.path(), 2, "answer");
        trajectory.task.reference_answer = Some(blank.to_owned());
        assert_eq!(judge.judge(&trajectory).await.outcome, Outcome::Success);
        assert_eq!(Judge::Reference.judge(&trajectory).await.outcome, Outcome::JudgeError);
    }
    assert!(server.requests().iter().all(|question| kind(question) != Kind::Reference));
}

#[tokio::test]
async fn episode_without_answer_is_asked_only_about_blocking() {
    let judged = judged(4, "click", pass_except(|_, _| None)).await;
    assert_eq!(judged.questions.len(), 1);
    assert_eq!((judged.kinds(), reward(&judged)), (vec![Kind::Blocking], (Outcome::Failure, 0)));
    assert!(
        judged.questions[0].text.contains("4. at http://www.site3.test/x: Click"),
        "{}",
        judged.questions[0].text
    );
}

#[tokio::test]
async fn unsupported_answer_ends_the_questions() {
    let judged =
        judged(2, "answer", pass_except(|kind, _| (kind == Kind::Supported).then(|| reply(FAILED)))).await;
    assert_eq!(
        (reward(&judged), judged.kinds()),
        ((Outcome::Failure, 0), vec![Kind::Blocking, Kind::Supported])
    );
}

#[tokio::test]
async fn failed_rubric_item_ends_the_questions() {
    let judged = judged(
        2,
        "answer",
        pass_except(|_, question| question.text.contains("second thing\n\nDo the").then(|| reply(FAILED))),
    )
    .await;
    assert_eq!(reward(&judged), (Outcome::Failure, 0));
    assert_eq!(judged.kinds(), [Kind::Blocking, Kind::Supported, Kind::Item, Kind::Item]);
    assert!(judged.evaluation_texts().contains("[Criterion A - Fact 2] "));
}

#[tokio::test]
async fn answer_different_from_reference_fails() {
    let judged =
        judged(2, "answer", pass_except(|kind, _| (kind == Kind::Reference).then(|| reply(FAILED)))).await;
    assert_eq!(reward(&judged), (Outcome::Failure, 0));
    let question = judged.questions.last().unwrap();
    assert!(question.images.is_empty() && question.text.contains("The agent's answer: the answer is 42"));
}

#[tokio::test]
async fn rate_limited_judge_is_retried_after_requested_delay() {
    let judged = judged(2, "answer", |question: &ModelRequest| match question.number {
        0..6 => ModelReply::RateLimited(Some(0.3)),
        _ => pass_except(|_, _| None)(question),
    });
    let since = std::time::Instant::now();
    let judged = judged.await;
    assert_eq!(reward(&judged), (Outcome::Success, 1));
    assert!(since.elapsed() >= Duration::from_millis(1800), "{:?}", since.elapsed());
}

#[tokio::test]
async fn failed_question_leaves_episode_unjudged_with_reason() {
    for (bad_reply, expected) in [
        (ModelReply::Status(413, "image too large".into()), "413"),
        (ModelReply::Status(400, "image exceeds 5 MB".into()), "image exceeds 5 MB"),
        (ModelReply::Filtered, "content filter"),
        (ModelReply::Status(401, "who are you".into()), "who are you"),
        (ModelReply::Garbage, "cannot be used"),
    ] {
        let judged = judged(
            2,
            "answer",
            pass_except(move |kind, _| (kind == Kind::Supported).then(|| bad_reply.clone())),
        )
        .await;
        assert_eq!(reward(&judged), (Outcome::JudgeError, 0), "{expected}");
        assert!(
            judged.evaluation_texts().contains("Not judged: ")
                && judged.evaluation_texts().contains(expected),
            "{}",
            judged.evaluation_texts()
        );
        let metrics = store::metrics::Metrics::of([&store::Summary::of(&judged.trajectory)]);
        assert_eq!((metrics.judge_errors, metrics.scored), (1, 0), "excluded from success_rate");
    }
}

#[tokio::test]
async fn silent_judge_leaves_episode_unjudged() {
    let silent = |kind, _: &ModelRequest| (kind == Kind::Supported).then_some(ModelReply::Never);
    let server = SimModel::start(pass_except(silent)).await;
    let Judge::Model(judge) = model_judge(&server.url(), |_| {}) else { panic!("a judge with a model") };
    let judge = Judge::Model(Box::new(judge.with_question_timeout(std::time::Duration::from_secs(1))));
    let judged = judged_by(&judge, &server, 2, "answer").await;
    assert_eq!(reward(&judged), (Outcome::JudgeError, 0));
    assert!(judged.evaluation_texts().contains("Not judged: "), "{}", judged.evaluation_texts());
    assert!(judged.kinds().contains(&Kind::Supported), "{:?}", judged.kinds());
}

#[tokio::test]
async fn temporary_judge_failure_is_retried() {
    let judged = judged(1, "answer", |question: &ModelRequest| match question.number {
        0 | 1 => ModelReply::Status(503, "busy".into()),
        _ => pass_except(|_, _| None)(question),
    })
    .await;
    assert_eq!(reward(&judged), (Outcome::Success, 1));
}

#[tokio::test]
async fn missing_screenshot_leaves_episode_unjudged() {
    let server = SimModel::start(pass_except(|_, _| None)).await;
    let judge = model_judge(&server.url(), |_| {});
    let folder = tempfile::tempdir().unwrap();
    let trajectory = episode(folder.path(), 2, "answer");
    std::fs::remove_file(folder.path().join("0.png")).unwrap();
    let verdict = judge.judge(&trajectory).await;
    assert_eq!(verdict.outcome, Outcome::JudgeError);
}

#[tokio::test]
async fn each_question_kind_uses_its_own_model() {
    let (main, other) =
        (SimModel::start(pass_except(|_, _| None)).await, SimModel::start(pass_except(|_, _| None)).await);
    let url = other.url();
    let judge = model_judge(&main.url(), move |config| {
        config.openai_config.keypoint_detection.model = Some("small".into());
        config.openai_config.blocking_detection.base_url = Some(format!("{url}/other/v2"));
        config.openai_config.evaluation.openai_api_key_env_var = Some("EVAL_KEY".into());
    });
    let judged = judged_by(&judge, &main, 2, "answer").await;
    assert_eq!(reward(&judged), (Outcome::Success, 1));
    let models: Vec<&str> = judged.questions.iter().map(|question| question.model.as_str()).collect();
    assert_eq!(models, ["small", "judge", "judge", "judge", "judge", "judge"]);
    assert_eq!(other.requests().len(), 1);
    assert_eq!(other.requests()[0].path, "/other/v2/chat/completions");
    assert_eq!(judged.questions[1].authorization, "Bearer key of EVAL_KEY");
    assert_eq!(other.requests()[0].authorization, "Bearer key of OPENAI_API_KEY");
}

#[tokio::test]
async fn judge_questions_match_snapshot() {
    let judged = judged(2, "answer", pass_except(|_, _| None)).await;
    let texts: Vec<String> = judged
        .questions
        .iter()
        .map(|question| {
            format!(
                "=== {:?}, {} screenshots\n{}",
                kind(question),
                question.images.len(),
                question.text.trim_end()
            )
        })
        .collect();
    insta::assert_snapshot!(texts.join("\n\n"));
}
