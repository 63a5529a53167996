//! Two ranks of one loop on one machine: both collect and train, and a dead one is named.

use rustix::process::Signal;
use store::loop_state::LoopStatus;
use testkit::ReservedPort;

use crate::harness::{LIMIT, TestLoop};

const RANKS: &[&str] = &["iterations=1", "--num-ranks=2", "train.ranks=all", "rank_stale_after=20"];

/// The ranks run on one machine, so that each needs a port of its own for its model server.
fn serve_at(port: &ReservedPort) -> String {
    format!("serve.url=http://127.0.0.1:{}", port.number())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_collect_and_train_together() {
    let test = TestLoop::new().await;
    let port = ReservedPort::new();
    let url = serve_at(&port);
    let mut second = test.start("run", &[RANKS, &["--rank=1", &url]].concat());
    let (code, log) = test.run_first("run", RANKS).await;
    let status = second.wait_for_exit(LIMIT).await;
    assert_eq!((code, status.code()), (Some(0), Some(0)), "{log}\n--- rank 1:\n{}", second.log());
    test.assert_no_processes().await;
    assert_eq!(test.state("run").status, LoopStatus::Finished);
    let logs = test.save_path("run").loop_directory().join("logs");
    for name in ["collect_rank_0", "collect_rank_1", "train_rank_0", "train_rank_1"] {
        assert!(logs.join(format!("iteration_0_{name}.log")).is_file(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_rank_is_named() {
    let test = TestLoop::new().await;
    let port = ReservedPort::new();
    let url = serve_at(&port);
    let ranks = ["iterations=1", "--num-ranks=2", "train.ranks=all", "rank_stale_after=3", "train.retries=0"];
    let behaviour = "+train.environment.BEHAVIOUR=hangs";
    let second = test.start("run", &[&ranks[..], &["--rank=1", &url, behaviour]].concat());
    let mut first = test.start("run", &[&ranks[..], &[behaviour]].concat());
    let logs = test.save_path("run").loop_directory().join("logs");
    testkit::eventually("rank 1 trains", LIMIT, async || logs.join("iteration_0_train_rank_1.log").exists())
        .await;
    second.signal(Signal::KILL);
    assert_eq!(first.wait_for_exit(LIMIT).await.code(), Some(1), "{}", first.log());
    assert!(first.log().contains("rank 1 (") && first.log().contains("does not answer"), "{}", first.log());
    assert_eq!(test.state("run").dead_ranks[0].rank, 1);
    test.assert_no_processes().await;
}
