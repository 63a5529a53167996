//! Judging saved iterations again repairs an outage and never removes a verdict.

use proto::trajectory::Outcome;
use rollout::judge::{
    Judge,
    rejudge::{RejudgeError, RejudgeOptions, RejudgeReport, rejudge},
};
use store::{IterationFile, Split};
use testkit::{
    sim_farm::Fault,
    sim_model::{ModelReply, SimModel},
};

use crate::{
    harness::{Harness, clicks_then_answers, model_judge, tasks},
    judging::closed_port_url,
};

const UNJUDGED: RejudgeOptions =
    RejudgeOptions { only_unjudged: true, iteration: None, split: None, concurrency: 3 };

/// Creates a finished iteration of five trajectories: four unjudged, one lost to the infrastructure.
async fn harness_after_outage() -> Harness {
    let mut harness = Harness::faulty(
        |call| if call.lease == 0 && call.runs("click_coords") { Fault::InstanceLost } else { Fault::None },
        clicks_then_answers(2),
    )
    .await;
    harness.limits.max_infra_retries = 0;
    harness.limits.episodes = 1;
    harness.judge_at(&closed_port_url().await);
    harness.run(tasks(5)).await.collected.unwrap();
    store::finish_iteration(&harness.save_path(), harness.id()).unwrap();
    harness
}

fn outcomes(harness: &Harness) -> Vec<Outcome> {
    let file = IterationFile::open(&harness.save_path().iteration_file(harness.id())).unwrap();
    file.summaries().iter().map(|summary| summary.outcome.unwrap()).collect()
}

#[tokio::test]
async fn rejudging_repairs_an_outage() {
    let harness = harness_after_outage().await;
    let (lost, away) = (Outcome::InfraLost, Outcome::JudgeError);
    assert_eq!(outcomes(&harness), [lost, away, away, away, away]);
    let judge = SimModel::start(|question| {
        let text =
            if question.text.contains("Blocked: YES") { "Blocked: NO" } else { "YES\nVerdict: SUCCESS" };
        let failing = question.text.contains("find thing 3") && question.text.contains("Verdict:");
        ModelReply::Reply(if failing { "Verdict: NOT SUCCESS".into() } else { text.into() })
    })
    .await;
    let judge = model_judge(&judge.url(), |_| {});
    let report = rejudge(&harness.save_path(), &judge, &UNJUDGED).await.unwrap();
    let wanted = RejudgeReport { judged: 4, changed: 4, skipped: 1, ..RejudgeReport::default() };
    assert_eq!(report, wanted);
    assert_eq!(
        outcomes(&harness),
        [lost, Outcome::Success, Outcome::Success, Outcome::Failure, Outcome::Success]
    );
    let file = IterationFile::open(&harness.save_path().iteration_file(harness.id())).unwrap();
    let trajectory = file.read(1).unwrap();
    assert_eq!((trajectory.steps.len(), trajectory.steps[1].reward.reward), (2, 1));
    let metrics = store::metrics::Metrics::of(file.summaries());
    assert_eq!((metrics.scored, metrics.successes, metrics.judge_errors), (4, 3, 0));
    let again = rejudge(&harness.save_path(), &judge, &UNJUDGED).await.unwrap();
    assert_eq!((again.judged, again.skipped), (0, 5), "nothing is left to judge");
}

#[tokio::test]
async fn rejudging_during_outage_keeps_earlier_verdicts() {
    let harness = harness_after_outage().await;
    let away = model_judge(&closed_port_url().await, |_| {});
    let report = rejudge(&harness.save_path(), &away, &UNJUDGED).await.unwrap();
    assert_eq!((report.judged, report.still_unjudged, report.changed), (4, 4, 0));
    rejudge(&harness.save_path(), &Judge::Reference, &UNJUDGED).await.unwrap();
    let decided = outcomes(&harness);
    assert_eq!(decided[1], Outcome::Success);
    let everything = RejudgeOptions { only_unjudged: false, ..UNJUDGED };
    let report = rejudge(&harness.save_path(), &away, &everything).await.unwrap();
    assert_eq!((report.judged, report.kept, report.changed), (4, 4, 0));
    assert_eq!(outcomes(&harness), decided);
}

/// Files of the Python system have rewards, but no outcomes.
#[tokio::test]
async fn rejudging_during_outage_keeps_rewards_without_outcomes() {
    let harness = harness_after_outage().await;
    rejudge(&harness.save_path(), &Judge::Reference, &UNJUDGED).await.unwrap();
    let file = harness.save_path().iteration_file(harness.id());
    store::pt::rewrite(&file, |mut trajectory| {
        trajectory.metadata.outcome = None;
        Some(trajectory)
    })
    .unwrap();
    let rewards = |harness: &Harness| -> Vec<i64> {
        let file = store::IterationFile::open(&harness.save_path().iteration_file(harness.id())).unwrap();
        file.summaries().iter().map(|summary| summary.reward).collect()
    };
    let before = rewards(&harness);
    assert!(before.contains(&1));
    let away = model_judge(&closed_port_url().await, |_| {});
    let everything = RejudgeOptions { only_unjudged: false, ..UNJUDGED };
    let report = rejudge(&harness.save_path(), &away, &everything).await.unwrap();
    assert_eq!((report.judged, report.kept), (5, 5));
    assert_eq!(rewards(&harness), before);
}

#[tokio::test]
async fn rejudging_is_limited_to_selected_iterations() {
    let harness = harness_after_outage().await;
    let nothing = RejudgeOptions { iteration: Some(7), ..UNJUDGED };
    let refused = rejudge(&harness.save_path(), &Judge::Reference, &nothing).await.unwrap_err();
    assert!(matches!(refused, RejudgeError::NoIteration { .. }), "{refused}");
    let test = RejudgeOptions { split: Some(Split::Test), ..UNJUDGED };
    assert!(rejudge(&harness.save_path(), &Judge::Reference, &test).await.is_err());
    let first = RejudgeOptions { iteration: Some(0), split: Some(Split::Train), ..UNJUDGED };
    assert_eq!(rejudge(&harness.save_path(), &Judge::Reference, &first).await.unwrap().judged, 4);
}
