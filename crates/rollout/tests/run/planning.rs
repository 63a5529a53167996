//! Planning of a run: steps by difficulty, blocked sites left out, unfinished journals.

use std::{io::Write, path::Path};

use rollout::{
    config::{self, Resolved},
    plan::{self, PlanError, Unfinished},
};
use serde_json::json;

fn task_file(folder: &Path, tasks: &[(&str, i64)]) {
    let mut file = std::fs::File::create(folder.join("tasks.jsonl")).unwrap();
    for (number, (website, difficulty)) in tasks.iter().enumerate() {
        let task = json!({
            "task_id": number, "task_name": format!("task {number}"), "website": website, "domain": "d",
            "subdomain": "s", "difficulty": difficulty, "evaluator_reference": "shown",
        });
        writeln!(file, "{task}").unwrap();
    }
}

fn resolved(folder: &Path, split: &str) -> Resolved {
    let overrides = [
        format!("save_path={}", folder.join("run").display()),
        format!("data_path={}", folder.display()),
        format!("env_config.split={split}"),
        "env_config.train_tasks=tasks.jsonl".to_owned(),
        "env_config.test_tasks=tasks.jsonl".to_owned(),
        "env_config.train_tasks_rollout_size=10".to_owned(),
        "env_config.test_tasks_rollout_size=0".to_owned(),
        "seed=1".to_owned(),
    ];
    config::load("rollout", &config::search_path(None), &overrides, &|_| None).unwrap()
}

fn websites(folder: &Path, split: &str) -> Vec<String> {
    let plan =
        plan::prepare(&resolved(folder, split), &Unfinished::SetAside, jiff::Timestamp::now()).unwrap();
    plan.journal.close_blocking().unwrap();
    let mut websites: Vec<String> = plan.tasks.iter().map(|task| task.website.clone()).collect();
    websites.sort();
    websites
}

#[test]
fn max_steps_depend_on_difficulty_and_split() {
    let folder = tempfile::tempdir().unwrap();
    task_file(folder.path(), &[("a.test", 3), ("b.test", 4), ("c.test", 6), ("d.test", 7), ("e.test", 1)]);
    for (split, wanted) in [("train", [30, 20, 20, 10, 10]), ("test", [70, 50, 50, 30, 30])] {
        let resolved = resolved(folder.path(), split);
        let plan = plan::prepare(&resolved, &Unfinished::Refuse, jiff::Timestamp::now()).unwrap();
        let steps: Vec<i64> = plan.tasks.iter().map(|task| task.max_steps).collect();
        assert_eq!(steps, wanted, "hardest first");
        let indices: Vec<i64> = plan.tasks.iter().map(|task| task.trajectory_index).collect();
        assert_eq!(indices, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn blocked_site_is_left_out_of_train_only() {
    let folder = tempfile::tempdir().unwrap();
    task_file(folder.path(), &[("https://www.blocked.test/x", 1), ("https://open.test", 1)]);
    assert_eq!(websites(folder.path(), "train").len(), 2);
    let site = rollout::plan::blocklist::BlockedSite::new(
        "https://blocked.test/wall",
        jiff::Timestamp::now(),
        None,
        None,
    );
    rollout::plan::blocklist::append(&folder.path().join("run"), &site).unwrap();
    assert_eq!(websites(folder.path(), "train"), ["https://open.test"]);
    assert_eq!(websites(folder.path(), "test").len(), 2);
}

#[test]
fn unfinished_journal_is_not_replaced_silently() {
    let folder = tempfile::tempdir().unwrap();
    task_file(folder.path(), &[("a.test", 1), ("b.test", 1)]);
    let resolved = resolved(folder.path(), "train");
    let prepare = |what: &Unfinished| plan::prepare(&resolved, what, jiff::Timestamp::now());
    let first = prepare(&Unfinished::Refuse).unwrap();
    let (path, seed) = (first.journal.path().to_owned(), first.run.seed);
    first.journal.close_blocking().unwrap();
    let refused = prepare(&Unfinished::Refuse).err().unwrap();
    assert!(matches!(refused, PlanError::Unfinished(_)), "{refused}");
    assert!(refused.to_string().contains("--resume") && refused.to_string().contains("--fresh"), "{refused}");
    let resumed = prepare(&Unfinished::Resume).unwrap();
    assert_eq!((resumed.tasks.len(), resumed.run.seed), (2, seed));
    resumed.journal.close_blocking().unwrap();
    let fresh = prepare(&Unfinished::SetAside).unwrap();
    assert_eq!(fresh.tasks.len(), 2);
    fresh.journal.close_blocking().unwrap();
    let prefix = format!("set_aside_{}.2", path.file_name().unwrap().to_str().unwrap());
    let kept = std::fs::read_dir(path.parent().unwrap()).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        let file_name = path.file_name().unwrap().to_str().unwrap();
        file_name.starts_with(&prefix) && path.extension().is_none_or(|extension| extension != "json")
    });
    assert_eq!(kept.count(), 1, "the old journal is set aside, not deleted");
}
