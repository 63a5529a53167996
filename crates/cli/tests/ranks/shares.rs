//! Fixed shares: ranks meet on the shared disk, and rank 0 makes one file of theirs.

use rustix::process::Signal;
use store::{IterationFile, Split};
use testkit::{
    eventually,
    sim_model::{ModelReply, SimModel},
};

use crate::scene::{ID, LIMIT, Scene, TASKS, ends_well, says};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_without_a_seed_share_one_draw_and_rank_0_merges() {
    let scene = Scene::new(3).await;
    let weights = ["--rank-weights=2,1,1"];
    let mut ranks: Vec<_> = (0..3).map(|rank| scene.start(rank, &scene.quick, &weights)).collect();
    for rank in &mut ranks {
        ends_well(rank).await;
    }
    scene.all_are_merged();
    let counts: Vec<usize> = (0..3).map(|rank| scene.collected_by(rank)).collect();
    assert_eq!(counts, [TASKS / 2, TASKS / 4, TASKS / 4]);
    let merged = IterationFile::open(&scene.save_path().iteration_file(ID)).unwrap();
    assert_eq!(merged.metadata().server_size, Some(6), "the instances of all ranks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_are_told_by_their_launcher() {
    let scene = Scene::new(2).await;
    let variables = |rank| [("SLURM_PROCID", rank), ("SLURM_NTASKS", "2"), ("SLURM_JOB_ID", "17")];
    let mut first = scene.start_in(0, &scene.quick, &[], &variables("0"));
    let mut second = scene.start_in(1, &scene.quick, &[], &variables("1"));
    ends_well(&mut first).await;
    ends_well(&mut second).await;
    scene.all_are_merged();
    let said = "rank 1 of 2 (rank from SLURM_PROCID, number from SLURM_NTASKS)";
    says(&second, &[said]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_deadline() {
    let scene = Scene::new(2).await;
    let stuck = SimModel::start(|question| match question.number {
        0..3 => ModelReply::answer("42"),
        _ => ModelReply::Never,
    })
    .await;
    let mut late = scene.start(1, &stuck, &[]);
    scene.has_collected(1, 3).await;
    eventually("the others hang", LIMIT, async || stuck.count() >= 5).await;
    let mut first = scene.start(0, &scene.quick, &["env_config.merge_wait_minutes=0.01"]);
    assert_eq!(first.wait_for_exit(LIMIT).await.code(), Some(3), "{}", first.log());
    says(&first, &["of rank 1", "webgym aggregate", "--overwrite"]).await;
    assert_eq!(scene.merged().len(), TASKS / 2 + 3, "what the slow rank has finished is in it");
    // The rank that was missing goes on, and everything becomes one.
    late.signal(Signal::KILL);
    late.wait_for_exit(LIMIT).await;
    let mut resumed = scene.start(1, &scene.quick, &["--resume"]);
    ends_well(&mut resumed).await;
    let root = scene.save_path();
    let root = root.root().to_str().unwrap();
    let command = ["aggregate", root, "--split", "train", "--iteration", "0", "--ranks", "2", "--overwrite"];
    let mut again = testkit::Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &command);
    ends_well(&mut again).await;
    scene.all_are_merged();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_of_an_earlier_launch_is_not_mistaken_for_this_one() {
    let scene = Scene::new(2).await;
    let stuck = SimModel::start(|_| ModelReply::Never).await;
    let launch = |id: &'static str| format!("env_config.launch_id={id}");
    let mut old = scene.start(0, &stuck, &[&launch("monday")]);
    eventually("it works", LIMIT, async || stuck.count() > 0).await;
    old.signal(Signal::KILL);
    old.wait_for_exit(LIMIT).await;
    // Rank 1 was never there on Monday. It does not join what was left of it.
    let mut refused = scene.start(1, &scene.quick, &[&launch("tuesday")]);
    assert_eq!(refused.wait_for_exit(LIMIT).await.code(), Some(1));
    says(&refused, &["--resume", "--fresh"]).await;
    let mut ranks: Vec<_> =
        (0..2).map(|rank| scene.start(rank, &scene.quick, &[&launch("tuesday"), "--fresh"])).collect();
    for rank in &mut ranks {
        ends_well(rank).await;
    }
    scene.all_are_merged();
    let plans = std::fs::read_dir(scene.save_path().split_directory(Split::Train)).unwrap();
    let aside =
        plans.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".plan.json."));
    assert_eq!(aside.count(), 1, "the old plan is set aside, not deleted");
}
