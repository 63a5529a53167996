//! Episodes that are saved like those of a rollout.

use std::path::Path;

use proto::trajectory::{Outcome, Trajectory};
use rustix::process::Signal;
use serde_json::{Value, json};
use store::{IterationFile, IterationId, SavePath, Split};
use testkit::{
    Http, eventually,
    sim_farm::{Fault, SimFarm, SimFarmOptions},
};

use crate::{LIMIT, Server};

fn read(folder: &Path, iteration: u64) -> Vec<Trajectory> {
    let path = SavePath::new(folder).iteration_file(IterationId::new(Split::Train, iteration));
    let file = IterationFile::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (0..file.summaries().len()).map(|index| file.read(index).unwrap()).collect()
}

async fn stop(mut server: Server) {
    server.webgym.signal(Signal::INT);
    server.webgym.wait_for_event("finished").await;
    assert_eq!(server.webgym.wait_for_exit(LIMIT).await.code(), Some(0), "{}", server.webgym.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn episodes_are_saved_with_steps_screenshots_and_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let option = format!("--save-path={}", folder.path().display());
    let server = Server::start(&[&option]).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({"task_id": "wiki", "screenshot": "none"})).await;
    let stepped = client.observe("step", &json!({"action_str": "scroll(0, 0)"})).await;
    assert!(stepped["observation"].get("screenshot_base64").is_none(), "taken for the record only");
    client.observe("step", &json!({"answer": "42"})).await;
    client.observe("reset", &json!({"task_id": "shop"})).await;
    client.observe("step", &json!({"action_str": "noop(1)"})).await;
    drop(client);
    server.wait_until_released().await;
    let mut unused = server.client().await;
    unused.observe("reset", &json!({})).await;
    stop(server).await;

    let saved = read(folder.path(), 0);
    let outcomes: Vec<_> = saved.iter().map(|one| one.metadata.outcome.unwrap()).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Cancelled], "an episode without steps is not saved");
    let first = &saved[0];
    assert_eq!(first.steps.len(), 2);
    assert_eq!(first.steps[1].reward.reward, 1);
    assert_eq!(first.steps[0].same_as_next_screenshot, Some(true), "nothing scrolled");
    assert_eq!(first.steps[0].response.raw_response, "scroll(0, 0)");
    for step in saved.iter().flat_map(|one| &one.steps) {
        let image = std::fs::read(&step.observation.image_path).unwrap();
        assert!(image.starts_with(b"\x89PNG"));
    }
    assert_eq!(std::fs::read_dir(folder.path().join("images")).unwrap().count(), 2);
    let images = Path::new(&first.steps[0].observation.image_path).parent().unwrap();
    assert_eq!(std::fs::read_dir(images).unwrap().count(), 2, "one file per step");
    assert!(folder.path().join("hyperparameters.yaml").exists());
    let (prompt, out) = (&first.steps[0].response.raw_prompt, tempfile::tempdir().unwrap());
    assert!(prompt.contains("Task: look at wiki") && prompt.contains("file://"), "{prompt}");
    let options = store::export::ExportOptions::new(store::export::Format::OpenAiMessages);
    let report =
        store::export::export(&SavePath::new(folder.path()), Split::Train, out.path(), &options).unwrap();
    assert_eq!((report.train_examples, report.unusable_steps), (3, 0), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_archive_ends_the_episode_without_reward() {
    let matches = json!({"exact": 4, "normalised": 0, "scored": 0, "missed": 1});
    let request = json!({"method": "GET", "url": "http://shop.test/missing.js", "match": "missed"});
    let report = json!({"replay": "shop", "matches": matches, "sites": {}, "requests": [request]});
    let options = SimFarmOptions { network_report: Some(report), ..SimFarmOptions::default() };
    let farm = SimFarm::start(options.with_script(|call| {
        let is_action = call.path == "/step" && call.command != "visit_page";
        if is_action { Fault::ReplayMiss } else { Fault::None }
    }));
    let (farm, folder) = (farm.await, tempfile::tempdir().unwrap());
    let url = farm.url();
    let save = format!("--save-path={}", folder.path().display());
    let replay = [&save, "env_config.network=replay", "env_config.archive=shop"];
    let server = Server::start_on(&["--farm", &url, "--max-sessions=1"], &replay).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({"task_id": "wiki"})).await;
    let network = &farm.session_options()[0]["network"];
    assert_eq!((&network["replay"], &network["session"]), (&json!("shop"), &json!("wiki#0")), "{network}");
    let ended = client.observe("step", &json!({"action_str": "scroll(0, 100)"})).await;
    assert_eq!((&ended["done"], &ended["reward"]), (&json!(true), &Value::Null), "{ended}");
    let metadata = &ended["metadata"];
    assert_eq!((&metadata["outcome"], &metadata["infra_lost"]), (&json!("replay_miss"), &json!(false)));
    stop(server).await;
    let saved = read(folder.path(), 0);
    assert_eq!(saved[0].metadata.outcome, Some(Outcome::ReplayMiss));
    assert_eq!(saved[0].metadata.network.as_ref().unwrap().misses[0].url, "http://shop.test/missing.js");
    assert_eq!(farm.leases_granted(), 1, "not tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn episodes_of_a_killed_server_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let option = format!("--save-path={}", folder.path().display());
    let mut killed = Server::start(&[&option]).await;
    let mut client = killed.client().await;
    client.observe("reset", &json!({})).await;
    client.observe("step", &json!({"answer": "42"})).await;
    client.observe("reset", &json!({})).await;
    client.observe("step", &json!({"action_str": "noop(1)"})).await;
    killed.webgym.signal(Signal::KILL);
    killed.webgym.wait_for_exit(LIMIT).await;

    let server = Server::start(&[&option]).await;
    assert_eq!(read(folder.path(), 0).len(), 1, "the unfinished episode is dropped");
    let mut client = server.client().await;
    client.observe("reset", &json!({})).await;
    client.observe("step", &json!({"answer": "43"})).await;
    stop(server).await;
    assert_eq!(read(folder.path(), 1)[0].metadata.outcome, Some(Outcome::Failure));
}

#[tokio::test(flavor = "multi_thread")]
async fn monitor_shows_episodes_as_they_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let option = format!("--save-path={}", folder.path().display());
    let server = Server::start(&[&option, "env_config.monitor_port=0"]).await;
    let monitor = Http::new(&server.webgym.monitor_url().await, None);
    let status = async || monitor.get("/status", &[]).await.json();
    assert_eq!(status().await["tasks"], 0);
    let mut client = server.client().await;
    client.observe("reset", &json!({"task_id": "wiki"})).await;
    assert_eq!(status().await["stages"], json!({"policy": 1}));
    // A second client waits for the browser.
    let mut waiting = server.client().await;
    waiting.send("reset", &json!({"task_id": "shop"})).await;
    eventually("the second episode is shown", LIMIT, async || status().await["stages"]["allocate"] == 1)
        .await;
    client.observe("step", &json!({"action_str": "scroll(0, 100)"})).await;
    let detail = monitor.get("/api/task/0", &[]).await.json();
    assert_eq!((&detail["id"], &detail["step"]), (&json!("wiki"), &json!(1)), "{detail}");
    assert_eq!(detail["steps"][0]["action"], "scroll(0, 100)");
    assert!(detail["live_url"].is_string(), "{detail}");
    let screenshot = monitor.get("/api/task/0/screenshot", &[]).await;
    assert!(screenshot.body.starts_with(b"\x89PNG"), "{}", screenshot.status);
    client.observe("step", &json!({"answer": "42"})).await;
    assert_eq!(status().await["outcomes"], json!({"success": 1}));
    assert_eq!(waiting.receive().await.unwrap()["type"], "observation");
    waiting.observe("step", &json!({"action_str": "noop(1)"})).await;
    drop(waiting);
    let outcomes = json!({"success": 1, "cancelled": 1});
    eventually("the second one is cancelled", LIMIT, async || status().await["outcomes"] == outcomes).await;
    let tasks = monitor.get("/api/tasks", &[]).await.json();
    assert_eq!((&tasks["id"], &tasks["revision"]), (&json!(["wiki", "shop"]), &json!(2)), "{tasks}");
    assert_eq!(tasks["about"]["iteration"], Value::Null);
}
