//! Fixed shares: ranks coordinate through the shared disk, and rank 0 merges their files.

use rustix::process::Signal;
use store::{IterationFile, Split};
use testkit::{
    eventually,
    sim_model::{ModelReply, SimModel},
};

use crate::harness::{ID, LIMIT, REQUESTS_PER_TASK, TASKS, TestRun, assert_success, reply, wait_for_log};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_share_one_plan_and_rank_0_merges() {
    let run = TestRun::new(3).await;
    let weights = ["--rank-weights=2,1,1"];
    let policies = [SimModel::start(reply).await, SimModel::start(reply).await, SimModel::start(reply).await];
    let mut ranks: Vec<_> = (0..3).map(|rank| run.start(rank, &policies[rank], &weights)).collect();
    for rank in &mut ranks {
        assert_success(rank).await;
    }
    run.assert_all_merged();
    run.assert_rank_files_removed();
    let counts = policies.each_ref().map(|policy| policy.count() / REQUESTS_PER_TASK);
    assert_eq!(counts, [TASKS / 2, TASKS / 4, TASKS / 4]);
    let merged = IterationFile::open(&run.save_path().iteration_file(ID)).unwrap();
    assert_eq!(merged.metadata().server_size, Some(6), "the sum of the instances of all ranks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rank_is_read_from_launcher_variables() {
    let run = TestRun::new(2).await;
    let variables = |rank| [("SLURM_PROCID", rank), ("SLURM_NTASKS", "2"), ("SLURM_JOB_ID", "17")];
    let mut first = run.start_in(0, &run.quick, &[], &variables("0"));
    let mut second = run.start_in(1, &run.quick, &[], &variables("1"));
    assert_success(&mut first).await;
    assert_success(&mut second).await;
    run.assert_all_merged();
    let expected = "rank 1 of 2 (rank from SLURM_PROCID, number from SLURM_NTASKS)";
    wait_for_log(&second, &[expected]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_proceeds_after_deadline() {
    let run = TestRun::new(2).await;
    let stuck = SimModel::start(|request| match request.number {
        0..3 => ModelReply::answer("42"),
        _ => ModelReply::Never,
    })
    .await;
    let mut late = run.start(1, &stuck, &[]);
    run.wait_until_collected(1, 3).await;
    eventually("the other requests hang", LIMIT, async || stuck.count() >= 5).await;
    let mut first = run.start(0, &run.quick, &["env_config.merge_wait_minutes=0.01"]);
    assert_eq!(first.wait_for_exit(LIMIT).await.code(), Some(3), "{}", first.log());
    wait_for_log(&first, &["of rank 1", "webgym aggregate", "--overwrite"]).await;
    assert_eq!(run.merged().len(), TASKS / 2 + 3, "it contains what the slow rank has finished");
    // The missing rank resumes, and a second merge is complete.
    late.signal(Signal::KILL);
    late.wait_for_exit(LIMIT).await;
    let mut resumed = run.start(1, &run.quick, &["--resume"]);
    assert_success(&mut resumed).await;
    let root = run.save_path();
    let root = root.root().to_str().unwrap();
    let command = ["aggregate", root, "--split", "train", "--iteration", "0", "--ranks", "2", "--overwrite"];
    let mut aggregate = testkit::Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &command);
    assert_success(&mut aggregate).await;
    run.assert_all_merged();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plan_of_earlier_launch_is_not_reused() {
    let run = TestRun::new(2).await;
    let stuck = SimModel::start(|_| ModelReply::Never).await;
    let launch = |id: &'static str| format!("env_config.launch_id={id}");
    let mut old = run.start(0, &stuck, &[&launch("monday")]);
    eventually("it is collecting", LIMIT, async || stuck.count() > 0).await;
    old.signal(Signal::KILL);
    old.wait_for_exit(LIMIT).await;
    // Rank 1 did not run on Monday. It must not join the plan that was left behind.
    let mut refused = run.start(1, &run.quick, &[&launch("tuesday")]);
    assert_eq!(refused.wait_for_exit(LIMIT).await.code(), Some(1));
    wait_for_log(&refused, &["--resume", "--fresh"]).await;
    let mut ranks: Vec<_> =
        (0..2).map(|rank| run.start(rank, &run.quick, &[&launch("tuesday"), "--fresh"])).collect();
    for rank in &mut ranks {
        assert_success(rank).await;
    }
    run.assert_all_merged();
    let plans = std::fs::read_dir(run.save_path().split_directory(Split::Train)).unwrap();
    let old_plans =
        plans.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".plan.json."));
    assert_eq!(old_plans.count(), 1, "the old plan is renamed, not deleted");
}
