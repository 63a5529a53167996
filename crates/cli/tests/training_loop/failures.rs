//! Trainers that misbehave: each has a clear message and a defined state, and nothing of an earlier iteration is lost.

use store::loop_state::{LoopStatus, Phase, PhaseStatus};

use crate::harness::TestLoop;

/// Runs a loop whose first iteration trains well and whose second one misbehaves.
async fn second_iteration(arguments: &[&str]) -> (TestLoop, Option<i32>, String) {
    let test = TestLoop::new().await;
    let (code, log) = test.run("run", &["iterations=1"]).await;
    assert_eq!(code, Some(0), "{log}");
    let more = ["--resume", "iterations=2", "train.retries=0"];
    let (code, log) = test.run("run", &[&more[..], arguments].concat()).await;
    (test, code, log)
}

fn assert_first_checkpoint_is_current(test: &TestLoop) {
    assert_eq!(test.current_checkpoint("run").unwrap().to_str(), Some("checkpoints/iteration_0"));
    let root = test.save_path("run").root().to_owned();
    assert!(root.join("model.pt/model.safetensors").is_file(), "the last good checkpoint is complete");
}

async fn assert_fails(arguments: &[&str], phase: Phase, parts: &[&str]) {
    let (test, code, log) = second_iteration(arguments).await;
    assert_eq!(code, Some(1), "{log}");
    for part in parts.iter().copied().chain([&*format!("iteration 1, {phase}: ")]) {
        assert!(log.contains(part), "{part:?}: {log}");
    }
    let state = test.phase("run", phase);
    assert_eq!(state.status, PhaseStatus::Failed);
    assert!(state.reason.unwrap().contains(parts[0]), "{log}");
    assert_eq!(test.state("run").status, LoopStatus::Failed);
    assert_first_checkpoint_is_current(&test);
    // With a trainer that behaves, the loop goes on where it failed.
    let (code, log) = test.run("run", &["--resume", "iterations=2"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(test.current_checkpoint("run").unwrap().to_str(), Some("checkpoints/iteration_1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trainer_without_output_fails() {
    assert_fails(&["+train.environment.BEHAVIOUR=empty"], Phase::Verify, &["the trainer wrote nothing to"])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_checkpoint_fails() {
    let parts = ["model.safetensors is damaged", "bytes"];
    assert_fails(&["+train.environment.BEHAVIOUR=half"], Phase::Verify, &parts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_trainer_is_reported_with_its_last_words() {
    let parts = ["exited with code 1", "out of memory", "iteration_1_train.log"];
    assert_fails(&["+train.environment.BEHAVIOUR=fails"], Phase::Train, &parts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_trainer_is_stopped() {
    let arguments = ["+train.environment.BEHAVIOUR=hangs", "train.timeout_minutes=0.02"];
    assert_fails(&arguments, Phase::Train, &["ran for more than"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trainer_that_fills_its_quota_fails() {
    // The shell's limit on the size of files stands for a full disk.
    let command = "train.command='ulimit -f 8192; exec python3 {save_path}/../train.py {data} {model} {output} {iteration} {rank}'";
    let test = TestLoop::new().await;
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/training_loop/programs/train.py");
    std::fs::copy(program, test.folder.path().join("train.py")).unwrap();
    let arguments = ["iterations=1", "train.retries=0", "+train.environment.BEHAVIOUR=full", command];
    let (code, log) = test.run("run", &arguments).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("iteration 0, train:") && log.contains("File too large"), "{log}");
    assert_eq!(test.current_checkpoint("run"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk_stops_the_loop_before_a_phase() {
    let test = TestLoop::new().await;
    let (code, log) = test.run("run", &["iterations=1", "min_free_gb=1000000"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("iteration 0, serve:") && log.contains("min_free_gb is 1000000"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_a_trainer_leaves_behind_are_ended() {
    let test = TestLoop::new().await;
    let leaves = ["+train.environment.BEHAVIOUR=leaves", "+serve.environment.BEHAVIOUR=leaves"];
    let (code, log) = test.run("run", &[&["iterations=1"], &leaves[..]].concat()).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the trainer left processes behind, which were ended: "), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_training_is_tried_again() {
    let test = TestLoop::new().await;
    let (code, log) = test.run("run", &["iterations=1", "+train.environment.BEHAVIOUR='once half'"]).await;
    assert_eq!(code, Some(0), "{log}");
    let state = test.state("run");
    let verify = state.iterations[0].phase(Phase::Verify).unwrap();
    assert_eq!((verify.status, verify.failures), (PhaseStatus::Done, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn iteration_without_training_data_keeps_the_model() {
    let test = TestLoop::new().await;
    // The base model answers wrongly, so there are no successful steps.
    let arguments = ["iterations=1", "export.arguments=[--to,openai-messages,--only-successful]"];
    let (code, log) = test.run("run", &arguments).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("none of 4 trajectories was selected"), "{log}");
    assert_eq!(test.current_checkpoint("run"), None);
    let state = test.state("run");
    assert_eq!(state.iterations[0].phase(Phase::Train).unwrap().status, PhaseStatus::Skipped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_configuration_is_refused_before_anything_starts() {
    let test = TestLoop::new().await;
    let (code, log) = test.run("run", &["train.command=[train,'{modle}']", "retry_puase=1"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("retry_pause"), "{log}");
    let (code, log) = test.run("run", &["train.command=[train,'{modle}']"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("unknown placeholder {modle}") && log.contains("{model}"), "{log}");
    assert!(!test.save_path("run").root().exists());
}
