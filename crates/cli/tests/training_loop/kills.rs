//! Kills `webgym loop` with SIGKILL at random moments and resumes it: the files are those of an undisturbed loop, and no
//! program is left behind.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use store::loop_state::LoopStatus;
use testkit::Rng;

use crate::harness::{LIMIT, TestLoop};

const KILLS: usize = 20;
const THREE: &str = "iterations=3";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_loops_resume_to_the_same_files() {
    let test = TestLoop::new().await;
    let started = Instant::now();
    let (code, log) = test.run("undisturbed", &[THREE]).await;
    assert_eq!(code, Some(0), "{log}");
    let duration = started.elapsed();
    let wanted = test.results("undisturbed");
    assert_eq!(test.current_checkpoint("undisturbed").unwrap().to_str(), Some("checkpoints/iteration_2"));
    let (mut random, mut kills, mut runs) = (Rng::new(20), 0, 0);
    while kills < KILLS {
        runs += 1;
        let name = format!("run{runs}");
        let mut resume: &[&str] = &[THREE];
        loop {
            let mut webgym = test.start(&name, resume);
            // Somewhere between the first moment and a good part of a whole run.
            let moment = duration.mul_f64(random.below(1000) as f64 / 2000.0);
            let Ok(status) = tokio::time::timeout(moment, webgym.wait_for_exit(LIMIT)).await else {
                webgym.signal(Signal::KILL);
                webgym.wait_for_exit(LIMIT).await;
                kills += 1;
                // A loop that was killed before it wrote its state begins anew.
                let has_state = test.save_path(&name).loop_directory().join("state.json").exists();
                resume = if has_state { &["--resume", THREE] } else { &[THREE] };
                continue;
            };
            assert_eq!(status.code(), Some(0), "{name} after {kills} kills: {}", webgym.log());
            break;
        }
        test.assert_no_processes().await;
        assert_eq!(test.results(&name), wanted, "{name} after {kills} kills");
        assert_eq!(test.state(&name).status, LoopStatus::Finished);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_loop_resumes() {
    let test = TestLoop::new().await;
    let mut webgym = test.start("run", &["iterations=1", "+train.environment.BEHAVIOUR='once hangs'"]);
    testkit::eventually("the trainer runs", LIMIT, async || {
        test.save_path("run").loop_directory().join("logs/iteration_0_train.log").exists()
    })
    .await;
    webgym.signal(Signal::TERM);
    assert_eq!(webgym.wait_for_exit(LIMIT).await.code(), Some(3), "{}", webgym.log());
    test.assert_no_processes().await;
    assert_eq!(test.state("run").status, LoopStatus::Stopped);
    let (code, log) = test.run("run", &["iterations=1"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("--resume"), "{log}");
    std::fs::write(test.save_path("run").loop_directory().join("data/misbehaved"), "").unwrap();
    let (code, log) = test.run("run", &["--resume", "iterations=1"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, log) = test.run("run", &["--resume", "iterations=1"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("all 1 iterations are done"), "{log}");
    let (code, log) = test.run("run", &["--resume", "iterations=2"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(test.current_checkpoint("run").unwrap().to_str(), Some("checkpoints/iteration_1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_loop_is_refused() {
    let test = TestLoop::new().await;
    let mut first = test.start("run", &["iterations=1", "+train.environment.BEHAVIOUR=hangs"]);
    testkit::eventually("the loop has a state", LIMIT, async || {
        test.save_path("run").loop_directory().join("state.json").exists()
    })
    .await;
    let mut second = test.start("run", &["--resume"]);
    assert_eq!(second.wait_for_exit(LIMIT).await.code(), Some(1));
    let message = format!("another loop (process {})", first.pid());
    assert!(second.log().contains(&message), "{}", second.log());
    first.signal(Signal::TERM);
    tokio::time::sleep(Duration::from_millis(50)).await;
    first.signal(Signal::TERM);
    first.wait_for_exit(LIMIT).await;
    test.assert_no_processes().await;
}
