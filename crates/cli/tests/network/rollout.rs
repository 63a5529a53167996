//! `webgym rollout` with browsers of its own: a run that records, and runs that replay it after the sites are gone.

use std::{path::Path, time::Duration};

use practice::Sites;
use proto::trajectory::{Outcome, Trajectory};
use serde_json::json;
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Webgym,
    sim_model::{ModelReply, SimModel},
};

use crate::common::WEBGYM;

/// Generous for loaded machines; a passing run needs a few seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// Collects two attempts at each task and returns the trajectories.
async fn collect(folder: &Path, name: &str, policy: &SimModel, more: &[&str]) -> Vec<Trajectory> {
    let own = [
        format!("save_path={}", folder.join(name).display()),
        format!("data_path={}", folder.display()),
        format!("env_config.vllm_server_url={}", policy.url()),
    ];
    let fixed = "rollout --config-name=rollout_train --allow-private-network env_config.train_tasks=tasks.jsonl \
                 env_config.train_tasks_rollout_size=2 env_config.group_size=2 env_config.server_size=2 \
                 env_config.monitor_port=null judge=reference";
    let arguments: Vec<&str> =
        fixed.split_whitespace().chain(own.iter().map(String::as_str)).chain(more.iter().copied()).collect();
    let mut run = Webgym::spawn(WEBGYM, &arguments);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(0), "{}", run.log());
    let save_path = SavePath::new(folder.join(name));
    let file = IterationFile::open(&save_path.iteration_file(IterationId::new(Split::Train, 0))).unwrap();
    let mut all: Vec<Trajectory> =
        (0..file.summaries().len()).map(|position| file.read(position).unwrap()).collect();
    // Each run has its own order of tasks.
    all.sort_by_key(|trajectory| trajectory.task.website.clone());
    all
}

fn write_tasks(folder: &Path, websites: &[String; 2]) {
    let tasks = websites.iter().enumerate().map(|(number, website)| {
        json!({
            "task_id": number, "task_name": "look around", "website": website, "domain": "d", "subdomain": "s",
            "difficulty": 1, "evaluator_reference": ["shown"], "definite_answer": "42",
        })
        .to_string()
    });
    std::fs::write(folder.join("tasks.jsonl"), tasks.collect::<Vec<_>>().join("\n")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_run_is_repeated_without_its_sites() {
    let folder = tempfile::tempdir().unwrap();
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    write_tasks(folder.path(), &[sites.url("/shop/"), sites.url("/wiki/")]);
    let policy = SimModel::start(|request| {
        if request.step() > 1 { ModelReply::answer("42") } else { ModelReply::click(300, 300) }
    })
    .await;
    let archive = folder.path().join("archives/sites");
    let record = format!("env_config.record_network={}", archive.display());
    let recorded = collect(folder.path(), "recorded", &policy, &[&record]).await;
    assert_eq!(recorded.len(), 4);
    let network = |trajectory: &Trajectory| trajectory.metadata.network.clone().expect("a report");
    assert!(recorded.iter().all(|trajectory| network(trajectory).recorded > 0));
    assert!(archive.join("indexes/index.cdxj").exists(), "the index is written with the end of the run");

    let elsewhere = sites.url("/jobs/");
    drop(sites);
    let replay = format!("env_config.archive={}", archive.display());
    let replay = ["env_config.network=replay", replay.as_str()];
    let replayed = collect(folder.path(), "replayed", &policy, &replay).await;
    for (recorded, replayed) in recorded.iter().zip(&replayed) {
        assert_eq!(replayed.metadata.outcome, Some(Outcome::Success));
        let matches = network(replayed).matches;
        assert!(matches.exact > 0 && matches.missed == 0, "{matches:?}");
        let pages = |trajectory: &Trajectory| {
            let steps = trajectory.steps.iter();
            steps
                .map(|step| (step.observation.url.clone(), step.observation.ac_tree.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(pages(recorded), pages(replayed));
    }
    let asked = policy.count();
    let forked =
        collect(folder.path(), "forked", &policy, &[&replay[..], &["env_config.group_from_step=1"]].concat())
            .await;
    let forks: Vec<_> = forked.iter().map(|trajectory| trajectory.metadata.forked_at_step).collect();
    assert_eq!(forks, [None, Some(1), None, Some(1)]);
    assert_eq!(policy.count() - asked, 2 * (2 + 1), "a forked attempt asks for its own steps only");

    write_tasks(folder.path(), &[elsewhere.clone(), elsewhere]);
    let missed = collect(folder.path(), "missed", &policy, &replay).await;
    for trajectory in &missed {
        assert_eq!(trajectory.metadata.outcome, Some(Outcome::ReplayMiss));
        assert!(network(trajectory).misses[0].url.contains("/jobs/"));
    }
}
