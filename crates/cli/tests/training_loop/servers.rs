//! Model servers that misbehave, and checkpoints that cannot be served.

use rustix::process::Signal;
use store::loop_state::Phase;
use testkit::{processes, signal};

use crate::harness::{LIMIT, TestLoop};

async fn assert_serve_fails(arguments: &[&str], part: &str) {
    let test = TestLoop::new().await;
    let own = ["iterations=1", "serve.retries=0"];
    let (code, log) = test.run("run", &[&own[..], arguments].concat()).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("iteration 0, serve:") && log.contains(part), "{part:?}: {log}");
    assert!(test.phase("run", Phase::Serve).reason.unwrap().contains(part));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_with_another_model_is_refused() {
    assert_serve_fails(
        &["+serve.environment.BEHAVIOUR=other"],
        "lists other-model; the loop needs a model named base",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_ends_at_once_is_reported_with_its_last_words() {
    assert_serve_fails(&["+serve.environment.BEHAVIOUR=dies"], "cannot load base").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_server_is_stopped() {
    let arguments = ["+serve.environment.BEHAVIOUR=slow", "serve.ready_minutes=0.03"];
    assert_serve_fails(&arguments, "did not serve base within").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_program_is_reported() {
    assert_serve_fails(&["serve.command=[no-such-program]"], "no-such-program did not start").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_of_others_is_not_touched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("serve.url=http://{}", listener.local_addr().unwrap());
    assert_serve_fails(&[&url], "something already answers at").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoint_that_cannot_be_served_is_rolled_back() {
    let test = TestLoop::new().await;
    let (code, log) = test.run("run", &["iterations=1"]).await;
    assert_eq!(code, Some(0), "{log}");
    let arguments =
        ["--resume", "iterations=2", "serve.retries=0", "+serve.environment.BEHAVIOUR='rejects iteration_1'"];
    let (code, log) = test.run("run", &arguments).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("the checkpoint of iteration 1 cannot be served"), "{log}");
    assert_eq!(test.current_checkpoint("run").unwrap().to_str(), Some("checkpoints/iteration_0"));
    let checkpoints = test.save_path("run").checkpoints();
    for aside in ["iteration_1.rejected_1", "iteration_1.rejected_2"] {
        assert!(checkpoints.join(aside).join("model.safetensors").is_file(), "{aside} is kept: {log}");
    }
    let (code, log) = test.run("run", &["--resume", "iterations=2"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(test.current_checkpoint("run").unwrap().to_str(), Some("checkpoints/iteration_1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_is_started_again() {
    let test = TestLoop::new().await;
    let mut webgym = test.start("run", &["iterations=1", "retry_pause=0.1"]);
    let model = test.save_path("run").root().display().to_string();
    let server = testkit::poll_until("the toy server runs", LIMIT, async || {
        let is_collecting =
            test.save_path("run").loop_directory().join("logs/iteration_0_collect.log").exists();
        let found = processes().into_iter().find(|process| {
            let line = process.command.join(" ");
            line.contains("serve.py") && !line.contains("supervise") && is_own(process.pid, webgym.pid())
        });
        found.filter(|_| is_collecting)
    })
    .await;
    signal(server.pid, Signal::KILL);
    let status = webgym.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(0), "{model}: {}", webgym.log());
    test.assert_no_processes().await;
}

fn is_own(pid: u32, ancestor: u32) -> bool {
    testkit::descendants(ancestor).iter().any(|process| process.pid == pid)
}
