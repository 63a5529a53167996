//! Metrics computed from files on disk, as defined in `docs/contract.md` ("Metrics").

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests compare exact quotients")]

#[path = "support/sample.rs"]
mod sample;

use proto::trajectory::{Outcome, Trajectory};
use store::durable::Existing;
use store::metrics::{self, Metrics, Scope};
use store::pt::PtWriter;
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath, Split, Summary};

fn write(save_path: &SavePath, id: IterationId, trajectories: &[Trajectory]) {
    save_path.create_directories(id.split).unwrap();
    let mut writer = PtWriter::create(&save_path.iteration_file(id)).unwrap();
    for trajectory in trajectories {
        writer.push(trajectory).unwrap();
    }
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
}

fn blocked(index: i64) -> Trajectory {
    let mut trajectory = sample::trajectory(index, 3);
    trajectory.steps[2].reward.is_blocked = true;
    trajectory.metadata.outcome = Some(Outcome::Blocked);
    trajectory
}

fn crashed(index: i64) -> Trajectory {
    let mut trajectory = sample::trajectory(index, 3);
    trajectory.steps[1].action = None;
    trajectory
}

fn unjudged(index: i64) -> Trajectory {
    let mut trajectory = sample::trajectory(index, 7);
    trajectory.steps[6].reward.reward = 0;
    trajectory.metadata.outcome = Some(Outcome::JudgeError);
    trajectory
}

#[test]
fn rates_have_the_documented_denominators() {
    let trajectories = [
        crashed(0),
        blocked(1),
        sample::trajectory(2, 5),
        sample::trajectory(3, 5),
        sample::trajectory(5, 5),
        unjudged(4),
    ];
    let summaries: Vec<Summary> = trajectories.iter().map(Summary::of).collect();
    let metrics = Metrics::of(&summaries);
    assert_eq!((metrics.total_trajectories, metrics.crashed, metrics.blocked), (6, 1, 1));
    assert_eq!(metrics.crashed_rate, 1.0 / 6.0, "of all trajectories");
    assert_eq!(metrics.blocked_rate, 1.0 / 5.0, "of those that did not crash");
    assert_eq!(metrics.success_rate, 1.0 / 3.0, "of the scored ones; the unjudged one is not counted");
    assert_eq!(metrics.judge_errors, 1, "the unjudged one is counted separately");
    assert_eq!(metrics.avg_steps, (5.0 + 5.0 + 5.0 + 7.0) / 4.0);
    // Step 3 of each trajectory goes back, and the last step answers.
    assert_eq!(metrics.goback_rate, 4.0 / 22.0, "of all steps");
    let chars =
        trajectories[2..].iter().flat_map(|t| &t.steps).map(|s| s.response.raw_response.chars().count());
    assert_eq!(metrics.avg_chars_per_response, chars.sum::<usize>() as f64 / 22.0);
}

#[test]
fn reply_length_is_in_characters() {
    let mut trajectory = sample::trajectory(0, 1);
    trajectory.steps[0].response.raw_response = "価格 €".to_owned();
    assert_eq!(Metrics::of([&Summary::of(&trajectory)]).avg_chars_per_response, 4.0);
}

#[test]
fn no_trajectories_give_zero_rates() {
    assert_eq!(Metrics::of([]), Metrics::default());
    let metrics = Metrics::of([&Summary::of(&crashed(0))]);
    assert_eq!((metrics.crashed_rate, metrics.success_rate, metrics.avg_steps), (1.0, 0.0, 0.0));
}

#[test]
fn metrics_cover_the_latest_iteration_or_a_window() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    assert_eq!(metrics::of_save_path(&save_path, Split::Test, None).unwrap(), None);
    for iteration in 0..3 {
        let trajectories: Vec<_> =
            (0..4).map(|index| sample::trajectory(index, 1 + iteration as usize)).collect();
        write(&save_path, IterationId::new(Split::Test, iteration), &trajectories);
    }
    let latest = metrics::of_save_path(&save_path, Split::Test, None).unwrap().unwrap();
    assert_eq!(latest.scope, Scope::Iteration(2));
    assert_eq!(latest.breakdown.overall.avg_steps, 3.0);
    let window = metrics::of_save_path(&save_path, Split::Test, Some(6)).unwrap().unwrap();
    assert_eq!(window.breakdown.overall.total_trajectories, 6);
    assert_eq!(window.breakdown.overall.avg_steps, (4.0 * 3.0 + 2.0 * 2.0) / 6.0);
    let all = metrics::of_save_path(&save_path, Split::Test, Some(100)).unwrap().unwrap();
    assert_eq!(all.breakdown.overall.total_trajectories, 12);
}

#[test]
fn iteration_includes_all_ranks_and_open_journals() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let id = IterationId::new(Split::Test, 0);
    write(&save_path, id.with_rank(Some(0)), &[sample::trajectory(0, 1), sample::trajectory(2, 1)]);
    let run = RunRecord {
        split: Split::Test,
        iteration: 0,
        rank: Some(1),
        seed: 0,
        config_digest: String::new(),
        tasks: 2,
        metadata: RunMetadata::default(),
    };
    let journal = Journal::create(&save_path.journal(id.with_rank(Some(1))), &run).unwrap();
    journal.append_finished_blocking(&sample::trajectory(1, 1)).unwrap();
    let report = metrics::of_iteration(&save_path, Split::Test, 0).unwrap();
    assert_eq!(report.breakdown.overall.total_trajectories, 3);
    journal.close_blocking().unwrap();
}

#[test]
fn metrics_table_agrees_with_json() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let trajectories: Vec<_> =
        (0..9).map(|index| sample::trajectory(index, 2)).chain([unjudged(9)]).collect();
    write(&save_path, IterationId::new(Split::Train, 0), &trajectories);
    let report = metrics::of_save_path(&save_path, Split::Train, None).unwrap().unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["overall"]["total_trajectories"], 10);
    assert_eq!(json["by_difficulty"][0]["name"], "easy");
    assert_eq!(json["by_domain"][0]["name"], "Reference");
    let expected = "\
train, iteration 0
            total  success  crashed  blocked   steps chars/reply  go back
easy            4   66.7 %    0.0 %    0.0 %     3.2          44    7.7 %
medium          3   33.3 %    0.0 %    0.0 %     2.0          44    0.0 %
hard            3   66.7 %    0.0 %    0.0 %     2.0          44    0.0 %
Reference       3   66.7 %    0.0 %    0.0 %     2.0          44    0.0 %
Shopping        4   66.7 %    0.0 %    0.0 %     3.2          44    7.7 %
Travel          3   33.3 %    0.0 %    0.0 %     2.0          44    0.0 %
overall        10   55.6 %    0.0 %    0.0 %     2.5          44    4.0 %
1 not judged (no judge configured, or it gave no verdict)
";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn repeated_tasks_are_reported_as_pass_at_k() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    // Three trajectories of task 0, of which one succeeds, two of task 1, which fail, and one of task 2.
    let repeat = |task: i64, index: i64, reward: i64| {
        let mut trajectory = sample::trajectory(task, 2);
        trajectory.task.trajectory_index = index;
        trajectory.steps[1].reward.reward = reward;
        trajectory
    };
    let trajectories = [
        repeat(0, 0, 1),
        repeat(0, 1, 0),
        repeat(0, 2, 0),
        repeat(1, 3, 0),
        repeat(1, 4, 0),
        repeat(2, 5, 1),
    ];
    write(&save_path, IterationId::new(Split::Test, 0), &trajectories);
    let report = metrics::of_save_path(&save_path, Split::Test, None).unwrap().unwrap();
    let pass_at_k = report.pass_at_k.unwrap();
    assert_eq!((pass_at_k.k, pass_at_k.tasks), (2, 2));
    // Of the three pairs of task 0, two contain its success.
    assert!((pass_at_k.rate - (2.0 / 3.0) / 2.0).abs() < 1e-12, "{pass_at_k:?}");
    assert!(report.to_string().contains("\npass@1 16.7 %, pass@2 33.3 % (2 repeated tasks)\n"), "{report}");
    assert_eq!(serde_json::to_value(&report).unwrap()["pass_at_k"]["k"], 2);
}

#[test]
fn same_task_in_two_iterations_is_not_a_repeat() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    for iteration in 0..2 {
        write(&save_path, IterationId::new(Split::Test, iteration), &[sample::trajectory(0, 2)]);
    }
    let report = metrics::of_save_path(&save_path, Split::Test, Some(10)).unwrap().unwrap();
    assert_eq!((report.breakdown.overall.total_trajectories, report.pass_at_k), (2, None));
    assert!(!serde_json::to_string(&report).unwrap().contains("pass_at_k"));
}

#[test]
fn summary_has_memory_length_and_distribution() {
    let mut trajectory = sample::trajectory(0, 3);
    trajectory.steps[0].response.raw_response = "Memory: 価格 €\nAction: look".to_owned();
    trajectory.steps[2].response.raw_response = "Memory: ab".to_owned();
    assert!(Summary::of(&trajectory).is_ood(), "no distribution counts as out of distribution");
    for (distribution, is_ood) in [("ood", true), ("id", false)] {
        trajectory.task.extra.insert("distribution".to_owned(), distribution.into());
        let directory = tempfile::tempdir().unwrap();
        let save_path = SavePath::new(directory.path());
        write(&save_path, IterationId::new(Split::Test, 0), std::slice::from_ref(&trajectory));
        let found = store::iteration::summaries_of(&save_path, Split::Test, 0).unwrap().remove(0);
        assert_eq!((found.memory_chars, found.is_ood()), (Some(4 + 2), is_ood), "{distribution}");
    }
}
