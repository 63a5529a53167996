//! The viewer's HTTP API over a real socket: its responses, and requests that must not reach other files.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../store/tests/support/python.rs"]
mod python;
mod save_paths;

use std::path::Path;

use proto::trajectory::Trajectory;
use serde_json::{Value, json};
use store::{IterationId, SavePath, Split};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use web::server::{self, PageServer};
use web::view::{View, router};

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(": ").map(|(_, value)| value)
    }
}

async fn serve(save_path: &SavePath, images: &[&Path]) -> PageServer {
    let view = View::new(save_path.clone(), images.iter().map(|path| path.to_path_buf()).collect());
    server::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap()
}

/// Sends the path unchanged: HTTP clients would normalise its dots.
async fn get_with(server: &PageServer, path: &str, headers: &str) -> Reply {
    let mut socket = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, body: bytes[split + 4..].to_vec() }
}

async fn get(server: &PageServer, path: &str) -> Reply {
    get_with(server, path, "").await
}

#[tokio::test]
async fn iterations_and_metrics_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let contents = get(&server, "/api/iterations").await.json();
    assert_eq!(
        contents["iterations"],
        json!([{"split": "train", "iteration": 0}, {"split": "train", "iteration": 1}, {"split": "test", "iteration": 0}])
    );
    let overview = get(&server, "/api/iterations/train/0").await.json();
    assert_eq!((overview["trajectories"].as_u64(), overview["steps"].as_u64()), (Some(12), Some(72)));
    assert_eq!(overview["outcomes"][0], json!(["success", 6]));
    assert_eq!(overview["overall"]["success_rate"], 0.5);
    assert_eq!((&overview["is_finished"], &overview["problems"]), (&json!(true), &json!([])));
    assert_eq!(overview["metadata"]["solution_model"], "practice-model");
}

#[tokio::test]
async fn table_lists_every_trajectory_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let table = get(&server, "/api/iterations/train/0/trajectories").await.json();
    assert_eq!(table["key"].as_array().unwrap().len(), 12);
    assert_eq!(table["outcome"]["values"], json!(["success", "failure"]));
    assert_eq!(table["outcome"]["rows"], json!([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]));
    assert_eq!(table["domain"]["values"], json!(["Shopping", "Travel", "Reference", "Jobs"]));
    assert_eq!(
        (&table["steps"][3], &table["difficulty"][3], &table["reward"][3]),
        (&json!(6), &json!(4), &json!(0))
    );
}

#[tokio::test]
async fn unchanged_table_is_not_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let address = "/api/iterations/train/0/trajectories";
    let reply = get(&server, address).await;
    let tag = reply.header("etag").unwrap();
    let again = get_with(&server, address, &format!("If-None-Match: {tag}\r\n")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn trajectory_contains_task_verdict_and_steps() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let found = get(&server, "/api/iterations/train/0/trajectories/7").await.json();
    assert_eq!(
        (&found["outcome"], &found["answer"], &found["class"]),
        (&json!("failure"), &json!("12.99 €"), &json!("hard"))
    );
    let rubric: Vec<_> = found["rubric"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["passed"], item["texts"].as_array().unwrap().len()))
        .collect();
    assert_eq!(rubric, [(&json!(true), 1), (&json!(false), 1), (&json!(null), 0)]);
    assert_eq!(found["judgment"][0]["about"]["kind"], "blocking");
    assert_eq!(
        (&found["judgment"][1]["about"]["kind"], &found["judgment"][1]["passed"]),
        (&json!("support"), &json!(true))
    );
    let steps = found["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 6);
    assert_eq!(steps[1]["action"]["arguments"]["text"], "kettle");
    assert_eq!((&steps[1]["is_keypoint"], &steps[2]["is_keypoint"]), (&json!(true), &json!(false)));
    assert_eq!(steps[1]["timings_ms"]["policy"], 1100.0);
    assert_eq!(steps[0]["screenshot_problem"], json!(null));
    assert_eq!((&steps[0]["reply_tokens"], &steps[0]["prompt_tokens"]), (&json!(3), &json!(null)));
    assert!(steps[1]["response"]["raw_prompt"].as_str().unwrap().contains("You operate a browser"));
    let lost = get(&server, "/api/iterations/train/0/trajectories/3").await.json();
    assert!(lost["steps"][0]["screenshot_problem"].as_str().unwrap().contains("is missing"), "{lost}");
}

#[tokio::test]
async fn siblings_span_iterations_and_splits() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let found = get(&server, "/api/iterations/train/1/trajectories/2/siblings").await.json();
    let names: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|sibling| format!("{}/{}/{}", sibling["split"], sibling["iteration"], sibling["key"]))
        .collect();
    assert_eq!(names, ["\"train\"/0/\"2\"", "\"train\"/1/\"2\"", "\"test\"/0/\"2\""]);
    assert_eq!(found[0]["outcome"], "success");
}

#[tokio::test]
async fn screenshot_is_png_and_revalidated() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let path = "/api/iterations/train/0/trajectories/1/steps/2/screenshot";
    let reply = get(&server, path).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/png")));
    assert_eq!(reply.body, save_paths::screenshot(80));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    let tag = reply.header("etag").unwrap();
    assert_eq!(get_with(&server, path, &format!("If-None-Match: {tag}\r\n")).await.status, 304);
    let lost = get(&server, "/api/iterations/train/0/trajectories/3/steps/0/screenshot").await;
    assert_eq!((lost.status, &lost.json()["code"]), (404, &json!("no_screenshot")));
    let beyond = get(&server, "/api/iterations/train/0/trajectories/1/steps/6/screenshot").await;
    assert_eq!((beyond.status, &beyond.json()["code"]), (404, &json!("no_step")));
}

/// Writes a trajectory whose screenshot paths are replaced by the given ones.
fn with_recorded_paths(directory: &Path, recorded: &[&str]) -> SavePath {
    let save_path = SavePath::new(directory.join("save"));
    let mut trajectory = save_paths::trajectory(0);
    for (step, path) in trajectory.steps.iter_mut().zip(recorded) {
        (*path).clone_into(&mut step.observation.image_path);
    }
    save_paths::write_iteration(&save_path, Split::Train, 0, &[trajectory]);
    save_path
}

#[tokio::test]
async fn recorded_path_outside_save_path_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.png"), save_paths::screenshot(1)).unwrap();
    let absolute = outside.join("secret.png").display().to_string();
    let dots = "images/../../outside/secret.png";
    let link = "images/link/secret.png";
    let save_path =
        with_recorded_paths(directory.path(), &["/etc/passwd", &absolute, dots, link, "images", ""]);
    std::os::unix::fs::symlink(&outside, save_path.images().join("link")).unwrap();
    let server = serve(&save_path, &[]).await;
    for (step, status) in [(0, 403), (1, 403), (2, 403), (3, 403), (4, 404), (5, 404)] {
        let reply =
            get(&server, &format!("/api/iterations/train/0/trajectories/0/steps/{step}/screenshot")).await;
        assert_eq!(reply.status, status, "step {step}: {}", reply.text());
        assert!(!reply.text().contains("root:"));
    }
    let server = serve(&save_path, &[&outside]).await;
    let named = get(&server, "/api/iterations/train/0/trajectories/0/steps/1/screenshot").await;
    assert_eq!(named.status, 200, "a folder that the user allowed is readable");
}

#[tokio::test]
async fn copied_save_path_uses_its_own_screenshots() {
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("original/images/a/step_000.png");
    std::fs::create_dir_all(original.parent().unwrap()).unwrap();
    std::fs::write(&original, save_paths::screenshot(1)).unwrap();
    let save_path = with_recorded_paths(directory.path(), &[&original.display().to_string()]);
    std::fs::create_dir_all(save_path.images().join("a")).unwrap();
    std::fs::write(save_path.images().join("a/step_000.png"), save_paths::screenshot(2)).unwrap();
    let server = serve(&save_path, &[]).await;
    let reply = get(&server, "/api/iterations/train/0/trajectories/0/steps/0/screenshot").await;
    assert_eq!((reply.status, reply.body), (200, save_paths::screenshot(2)));
}

#[tokio::test]
async fn files_that_are_not_images_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = with_recorded_paths(directory.path(), &["images/page.png", "hyperparameters.yaml"]);
    std::fs::write(save_path.images().join("page.png"), "<script>alert(1)</script>").unwrap();
    std::fs::write(save_path.hyperparameters(), "api_key: secret").unwrap();
    let server = serve(&save_path, &[]).await;
    for step in [0, 1] {
        let reply =
            get(&server, &format!("/api/iterations/train/0/trajectories/0/steps/{step}/screenshot")).await;
        assert_eq!((reply.status, &reply.json()["code"]), (415, &json!("not_an_image")));
        assert!(!reply.text().contains("secret") && !reply.text().contains("alert"));
    }
}

#[tokio::test]
async fn invalid_urls_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let bad = [
        ("/api/iterations/../../etc/passwd", 404),
        ("/api/iterations/train/..%2f..%2fetc", 400),
        ("/api/iterations/train/-1", 400),
        ("/api/iterations/train/99999999999999999999999", 400),
        ("/api/iterations/valid/0", 400),
        ("/api/iterations/train/9", 404),
        ("/api/iterations/train/9/trajectories", 404),
        ("/api/iterations/train/0/trajectories/99", 404),
        ("/api/iterations/train/0/trajectories/..%2f..%2f..%2fetc%2fpasswd", 404),
        ("/api/iterations/train/0/trajectories/0/steps/..%2f/screenshot", 400),
        ("/api/iterations/train/0/trajectories/0/steps/-1/screenshot", 400),
        ("/api/iterations/train/0/trajectories/%00/steps/0/screenshot", 404),
        ("/api/curves?ema=2", 400),
        ("/api/curves?ema=x", 400),
        ("/api/curves?x=time", 400),
        ("/api/plots.svg?ood=maybe", 400),
        ("/assets/../../Cargo.toml", 404),
    ];
    for (path, status) in bad {
        let reply = get(&server, path).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(!reply.text().contains("root:"), "{path}");
    }
}

#[tokio::test]
async fn hostile_text_is_json_with_strict_csp() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let reply = get(&server, "/api/iterations/train/1/trajectories/5").await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let found = reply.json();
    assert_eq!(found["task"]["task_name"], save_paths::HOSTILE);
    assert_eq!(found["judgment"][0]["text"], save_paths::HOSTILE.trim());
    let table = get(&server, "/api/iterations/train/1/trajectories").await.json();
    assert_eq!(table["task"][5], save_paths::HOSTILE);
}

#[tokio::test]
async fn running_run_is_readable() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let journal = save_paths::journal(&save_path, 5);
    let server = serve(&save_path, &[]).await;
    journal.append_finished(&save_paths::trajectory(4)).await.unwrap();
    let unfinished = save_paths::trajectory(2);
    journal.append_episode(&unfinished.task, 0, None).await.unwrap();
    for (number, step) in (0..).zip(&unfinished.steps[..2]) {
        journal.append_step(2, 0, number, step).await.unwrap();
    }
    journal.append_finished(&save_paths::trajectory(3)).await.unwrap();
    let table = get(&server, "/api/iterations/train/0/trajectories").await.json();
    assert_eq!((&table["key"], &table["announced"]), (&json!(["2", "3", "4"]), &json!(5)));
    assert_eq!(table["outcome"]["values"], json!(["running", "failure", "success"]));
    assert_eq!((&table["steps"][0], &table["is_finished"]), (&json!(2), &json!(false)));
    let running = get(&server, "/api/iterations/train/0/trajectories/2").await.json();
    assert_eq!((&running["is_running"], running["steps"].as_array().unwrap().len()), (&json!(true), 2));
    assert_eq!((&running["outcome"], &running["crash"]), (&json!("running"), &json!(null)));

    // The run continues; the changed journal is read again.
    journal.append_finished(&unfinished).await.unwrap();
    journal.close().await.unwrap();
    let finished = get(&server, "/api/iterations/train/0/trajectories/2").await.json();
    assert_eq!((&finished["outcome"], finished["steps"].as_array().unwrap().len()), (&json!("success"), 6));
    let overview = get(&server, "/api/iterations/train/0").await.json();
    assert_eq!((&overview["trajectories"], &overview["running"]), (&json!(3), &json!(0)));
}

#[tokio::test]
async fn broken_file_is_reported_and_others_shown() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = save_paths::small(directory.path());
    let rank = |rank| save_path.iteration_file(IterationId::new(Split::Test, 1).with_rank(Some(rank)));
    std::fs::copy(save_path.iteration_file(IterationId::new(Split::Test, 0)), rank(0)).unwrap();
    std::fs::write(rank(1), b"not a trajectory file").unwrap();
    let server = serve(&save_path, &[]).await;
    let table = get(&server, "/api/iterations/test/1/trajectories").await.json();
    assert_eq!(table["key"].as_array().unwrap().len(), 4);
    assert!(table["problems"][0].as_str().unwrap().contains("iteration1_rank_1"), "{}", table["problems"]);
    assert_eq!(get(&server, "/api/curves").await.status, 200);
}

/// Writes a file as the Python system does: no table of contents, repeated indices, missing attributes.
const PYTHON: &str = r#"
import sys, pickle
import webgym.data.components as c

def make(cls, **attributes):
    o = cls()
    o.__dict__.update(attributes)
    return o

def trajectory(name, reward, image):
    task = make(c.Task, task_name=name, domain="Shop", website="https://shop.example", difficulty=4, task_id=7,
                evaluator_reference=[{"description": "seen", "difficulty": 1}], trajectory_index=3, max_steps=9)
    return [{
        "observation": make(c.Observation, task=task, image_path=image, ac_tree=None, page_metadata={"title": "t", "url": "u"}),
        "action": make(c.Action, action={"key": "answer", "arguments": {"text": "42"}}, action_string="ANSWER [42]"),
        "response": make(c.Response, raw_response="r", answering_tokens=None, raw_prompt="plain words"),
        "reward": make(c.Reward, reward=reward, evaluation=["well", {"score": 3}], is_blocked=False, submit=True, submission_judgment=None),
    }]

content = {"trajectories": [trajectory("first", 1, "/gone/images/a/step_000.png"), trajectory("second", 0, None), []], "metadata": {"seed": 1}}
with open(sys.argv[1], "wb") as out:
    pickle.dump(content, out, protocol=4)
"#;

#[tokio::test]
async fn python_files_are_readable() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    save_path.create_directories(Split::Train).unwrap();
    std::fs::create_dir_all(save_path.images().join("a")).unwrap();
    std::fs::write(save_path.images().join("a/step_000.png"), save_paths::screenshot(9)).unwrap();
    let file = save_path.iteration_file(IterationId::new(Split::Train, 0));
    python::run(&python::with_module("pickle"), PYTHON, &[&file]);
    let server = serve(&save_path, &[]).await;
    let table = get(&server, "/api/iterations/train/0/trajectories").await.json();
    assert_eq!(table["key"], json!(["2", "3", "3~1"]), "trajectories with the same index get different keys");
    assert_eq!(table["outcome"]["rows"], json!([0, 1, 0]));
    let first = get(&server, "/api/iterations/train/0/trajectories/3").await.json();
    assert_eq!((&first["task"]["task_name"], &first["outcome"]), (&json!("first"), &json!("success")));
    assert_eq!((&first["is_outcome_recorded"], &first["answer"]), (&json!(false), &json!("42")));
    let moved = get(&server, "/api/iterations/train/0/trajectories/3/steps/0/screenshot").await;
    assert_eq!(moved.body, save_paths::screenshot(9), "found in the current image folder");
    let second = get(&server, "/api/iterations/train/0/trajectories/3~1").await.json();
    assert_eq!(second["task"]["task_name"], "second");
    assert!(second["steps"][0]["screenshot_problem"].as_str().unwrap().contains("none was recorded"));
}

#[tokio::test]
async fn curves_are_served_as_json_svg_and_png() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(&save_paths::small(directory.path()), &[]).await;
    let curves = get(&server, "/api/curves?ema=0.5").await.json();
    assert_eq!((curves["charts"].as_array().unwrap().len(), &curves["trajectories"]), (15, &json!(24)));
    let success = &curves["charts"][0]["series"][0];
    assert_eq!(
        (&success["split"], &success["line"], &success["values"]),
        (&json!("train"), &json!("overall"), &json!([0.5, 0.5]))
    );
    assert_eq!(success["smoothed"], json!([0.5, 0.5]));
    let svg = get(&server, "/api/plots.svg").await;
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.text().contains("Success rate") && svg.text().ends_with("</svg>\n"));
    let png = get(&server, "/api/plots.png").await;
    assert!(png.body.starts_with(b"\x89PNG"));
    let empty = tempfile::tempdir().unwrap();
    let server = serve(&SavePath::new(empty.path()), &[]).await;
    let empty_reply = get(&server, "/api/curves").await;
    assert_eq!((empty_reply.status, &empty_reply.json()["code"]), (404, &json!("nothing_to_plot")));
}

#[tokio::test]
async fn curves_have_trajectories_on_x_axis_and_filter_test_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    // Trajectory 0 of train and trajectories 0 and 1 of test are in distribution, the others have no distribution or "ood".
    let tagged = |count: i64, tags: &[&str]| -> Vec<Trajectory> {
        let mut trajectories: Vec<_> = (0..count).map(save_paths::trajectory).collect();
        for (trajectory, tag) in trajectories.iter_mut().zip(tags) {
            trajectory.task.extra.insert("distribution".to_owned(), (*tag).into());
        }
        trajectories
    };
    save_paths::write_iteration(&save_path, Split::Train, 0, &tagged(3, &["id"]));
    save_paths::write_iteration(&save_path, Split::Train, 2, &tagged(2, &[]));
    save_paths::write_iteration(&save_path, Split::Test, 0, &tagged(5, &["id", "id", "ood"]));
    let server = serve(&save_path, &[]).await;
    let all = get(&server, "/api/curves").await.json();
    let series = |charts: &Value, split: &str, name: &str| {
        let chart =
            &charts["charts"].as_array().unwrap().iter().find(|chart| chart["measure"] == name).unwrap();
        let mut series = chart["series"].as_array().unwrap().iter();
        series.find(|series| series["split"] == split && series["line"] == "overall").unwrap().clone()
    };
    assert_eq!(
        (&all["x"], &all["ood"], &all["trajectories"]),
        (&json!("iterations"), &json!(false), &json!(10))
    );
    assert_eq!(series(&all, "train", "trajectories")["x"], json!([0, 2]));
    assert_eq!(series(&all, "test", "trajectories")["values"], json!([5.0]));
    let ood = get(&server, "/api/curves?x=trajectories&ood=true").await.json();
    assert_eq!(
        (&ood["x"], &ood["ood"], &ood["trajectories"]),
        (&json!("trajectories"), &json!(true), &json!(8))
    );
    assert_eq!(series(&ood, "train", "trajectories")["x"], json!([3, 5]), "train tasks are not filtered");
    assert_eq!(series(&ood, "train", "trajectories")["iterations"], json!([0, 2]));
    assert_eq!(series(&ood, "test", "trajectories")["values"], json!([3.0]));
    assert_eq!(series(&ood, "test", "trajectories")["x"], json!([3]));
    // Of the trajectories 2, 3 and 4, the even ones succeed.
    assert_eq!(series(&ood, "test", "success")["values"], json!([2.0 / 3.0]));
    // The memory is "seen N" in each of the six steps.
    assert_eq!(series(&ood, "test", "memory_length")["values"], json!([6.0]));
    let svg = get(&server, "/api/plots.svg?x=trajectories&ood=true").await;
    assert!(svg.text().contains("trajectories of the split so far"));
}

#[tokio::test]
async fn token_is_required_outside_loopback() {
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(save_paths::small(directory.path()), Vec::new());
    let server = server::serve(([0, 0, 0, 0], 0).into(), None, router(view)).await.unwrap();
    for path in ["/", "/api/iterations", "/api/iterations/train/0/trajectories/1/steps/2/screenshot"] {
        assert_eq!(get(&server, path).await.status, 401, "{path}");
    }
    let token = server.link().split_once("?token=").unwrap().1.to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(get_with(&server, "/api/iterations", &bearer).await.status, 200);
}
