//! The viewer's answers over a real socket: what is in them, and what nobody gets out of them.

#![allow(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

#[path = "../../store/tests/support/python.rs"]
mod python;
mod viewdata;

use std::path::Path;

use serde_json::{Value, json};
use store::{IterationId, SavePath, Split};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use web::page::{self, Place};
use web::view::{View, router};

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
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

async fn serve(save_path: &SavePath, images: &[&Path]) -> Place {
    let view = View::new(save_path.clone(), images.iter().map(|path| path.to_path_buf()).collect());
    page::serve(([127, 0, 0, 1], 0).into(), None, router(view)).await.unwrap()
}

/// Sends the path as it is: no client in between mends its dots.
async fn ask_with(place: &Place, path: &str, headers: &str) -> Answer {
    let mut socket = tokio::net::TcpStream::connect(place.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[split + 4..].to_vec() }
}

async fn ask(place: &Place, path: &str) -> Answer {
    ask_with(place, path, "").await
}

#[tokio::test]
async fn iterations_and_their_figures_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let contents = ask(&place, "/api/iterations").await.json();
    assert_eq!(
        contents["iterations"],
        json!([{"split": "train", "iteration": 0}, {"split": "train", "iteration": 1}, {"split": "test", "iteration": 0}])
    );
    let overview = ask(&place, "/api/iterations/train/0").await.json();
    assert_eq!((overview["trajectories"].as_u64(), overview["steps"].as_u64()), (Some(12), Some(72)));
    assert_eq!(overview["outcomes"][0], json!(["success", 6]));
    assert_eq!(overview["overall"]["success_rate"], 0.5);
    assert_eq!((&overview["is_finished"], &overview["problems"]), (&json!(true), &json!([])));
    assert_eq!(overview["metadata"]["solution_model"], "practice-model");
}

#[tokio::test]
async fn the_table_has_a_row_for_each_and_names_once() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let answer = ask(&place, "/api/iterations/train/0/trajectories").await;
    let table = answer.json();
    assert_eq!(table["key"].as_array().unwrap().len(), 12);
    assert_eq!(table["outcome"]["values"], json!(["success", "failure"]));
    assert_eq!(table["outcome"]["rows"], json!([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]));
    assert_eq!(table["domain"]["values"], json!(["Shopping", "Travel", "Reference", "Jobs"]));
    assert_eq!(
        (&table["steps"][3], &table["difficulty"][3], &table["reward"][3]),
        (&json!(6), &json!(4), &json!(0))
    );
    let tag = answer.header("etag").unwrap();
    let again =
        ask_with(&place, "/api/iterations/train/0/trajectories", &format!("If-None-Match: {tag}\r\n")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn one_trajectory_has_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let found = ask(&place, "/api/iterations/train/0/trajectories/7").await.json();
    assert_eq!(
        (&found["outcome"], &found["answer"], &found["class"]),
        (&json!("failure"), &json!("12.99 €"), &json!("hard"))
    );
    let rubric: Vec<_> = found["rubric"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["passed"], item["words"].as_array().unwrap().len()))
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
    let lost = ask(&place, "/api/iterations/train/0/trajectories/3").await.json();
    assert!(lost["steps"][0]["screenshot_problem"].as_str().unwrap().contains("is not there"), "{lost}");
}

#[tokio::test]
async fn attempts_at_one_task_find_each_other_over_iterations_and_splits() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let found = ask(&place, "/api/iterations/train/1/trajectories/2/siblings").await.json();
    let names: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}/{}/{}", one["split"], one["iteration"], one["key"]))
        .collect();
    assert_eq!(names, ["\"train\"/0/\"2\"", "\"train\"/1/\"2\"", "\"test\"/0/\"2\""]);
    assert_eq!(found[0]["outcome"], "success");
}

#[tokio::test]
async fn screenshots_come_as_what_they_are_and_are_asked_about_again() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let path = "/api/iterations/train/0/trajectories/1/steps/2/screenshot";
    let answer = ask(&place, path).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/png")));
    assert_eq!(answer.body, viewdata::picture(80));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let tag = answer.header("etag").unwrap();
    assert_eq!(ask_with(&place, path, &format!("If-None-Match: {tag}\r\n")).await.status, 304);
    let lost = ask(&place, "/api/iterations/train/0/trajectories/3/steps/0/screenshot").await;
    assert_eq!((lost.status, &lost.json()["code"]), (404, &json!("no_screenshot")));
    let beyond = ask(&place, "/api/iterations/train/0/trajectories/1/steps/6/screenshot").await;
    assert_eq!((beyond.status, &beyond.json()["code"]), (404, &json!("no_step")));
}

/// A trajectory whose record names a file that is none of its screenshots.
fn pointing_at(directory: &Path, recorded: &[&str]) -> SavePath {
    let save_path = SavePath::new(directory.join("save"));
    let mut trajectory = viewdata::trajectory(0);
    for (step, path) in trajectory.steps.iter_mut().zip(recorded) {
        (*path).clone_into(&mut step.observation.image_path);
    }
    viewdata::write_iteration(&save_path, Split::Train, 0, &[trajectory]);
    save_path
}

#[tokio::test]
async fn a_recorded_path_does_not_lead_out_of_the_save_path() {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.png"), viewdata::picture(1)).unwrap();
    let absolute = outside.join("secret.png").display().to_string();
    let dots = "images/../../outside/secret.png";
    let link = "images/link/secret.png";
    let save_path = pointing_at(directory.path(), &["/etc/passwd", &absolute, dots, link, "images", ""]);
    std::os::unix::fs::symlink(&outside, save_path.images().join("link")).unwrap();
    let place = serve(&save_path, &[]).await;
    for (step, status) in [(0, 403), (1, 403), (2, 403), (3, 403), (4, 404), (5, 404)] {
        let answer =
            ask(&place, &format!("/api/iterations/train/0/trajectories/0/steps/{step}/screenshot")).await;
        assert_eq!(answer.status, status, "step {step}: {}", answer.text());
        assert!(!answer.text().contains("root:"));
    }
    let place = serve(&save_path, &[&outside]).await;
    let named = ask(&place, "/api/iterations/train/0/trajectories/0/steps/1/screenshot").await;
    assert_eq!(named.status, 200, "a folder that the user named may be shown");
}

#[tokio::test]
async fn a_copied_save_path_shows_its_own_pictures() {
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("original/images/a/step_000.png");
    std::fs::create_dir_all(original.parent().unwrap()).unwrap();
    std::fs::write(&original, viewdata::picture(1)).unwrap();
    let save_path = pointing_at(directory.path(), &[&original.display().to_string()]);
    std::fs::create_dir_all(save_path.images().join("a")).unwrap();
    std::fs::write(save_path.images().join("a/step_000.png"), viewdata::picture(2)).unwrap();
    let place = serve(&save_path, &[]).await;
    let answer = ask(&place, "/api/iterations/train/0/trajectories/0/steps/0/screenshot").await;
    assert_eq!((answer.status, answer.body), (200, viewdata::picture(2)));
}

#[tokio::test]
async fn only_images_are_sent_whatever_their_name() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = pointing_at(directory.path(), &["images/page.png", "hyperparameters.yaml"]);
    std::fs::write(save_path.images().join("page.png"), "<script>alert(1)</script>").unwrap();
    std::fs::write(save_path.hyperparameters(), "api_key: secret").unwrap();
    let place = serve(&save_path, &[]).await;
    for step in [0, 1] {
        let answer =
            ask(&place, &format!("/api/iterations/train/0/trajectories/0/steps/{step}/screenshot")).await;
        assert_eq!((answer.status, &answer.json()["code"]), (415, &json!("not_an_image")));
        assert!(!answer.text().contains("secret") && !answer.text().contains("alert"));
    }
}

#[tokio::test]
async fn addresses_hold_numbers_and_keys_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
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
        ("/assets/../../Cargo.toml", 404),
    ];
    for (path, status) in bad {
        let answer = ask(&place, path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(!answer.text().contains("root:"), "{path}");
    }
}

#[tokio::test]
async fn hostile_texts_come_as_json_strings_under_a_strict_policy() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let answer = ask(&place, "/api/iterations/train/1/trajectories/5").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let found = answer.json();
    assert_eq!(found["task"]["task_name"], viewdata::HOSTILE);
    assert_eq!(found["judgment"][0]["text"], viewdata::HOSTILE.trim());
    let table = ask(&place, "/api/iterations/train/1/trajectories").await.json();
    assert_eq!(table["task"][5], viewdata::HOSTILE);
}

#[tokio::test]
async fn a_run_can_be_looked_at_while_it_writes() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let journal = viewdata::journal(&save_path, 5);
    let place = serve(&save_path, &[]).await;
    journal.append_finished(&viewdata::trajectory(4)).await.unwrap();
    let begun = viewdata::trajectory(2);
    journal.append_episode(&begun.task, 0, None).await.unwrap();
    for (number, step) in (0..).zip(&begun.steps[..2]) {
        journal.append_step(2, 0, number, step).await.unwrap();
    }
    journal.append_finished(&viewdata::trajectory(3)).await.unwrap();
    let table = ask(&place, "/api/iterations/train/0/trajectories").await.json();
    assert_eq!((&table["key"], &table["announced"]), (&json!(["2", "3", "4"]), &json!(5)));
    assert_eq!(table["outcome"]["values"], json!(["running", "failure", "success"]));
    assert_eq!((&table["steps"][0], &table["is_finished"]), (&json!(2), &json!(false)));
    let running = ask(&place, "/api/iterations/train/0/trajectories/2").await.json();
    assert_eq!((&running["is_begun"], running["steps"].as_array().unwrap().len()), (&json!(true), 2));
    assert_eq!((&running["outcome"], &running["crash"]), (&json!("running"), &json!(null)));

    // It goes on, and what was looked at is looked at anew.
    journal.append_finished(&begun).await.unwrap();
    journal.close().await.unwrap();
    let over = ask(&place, "/api/iterations/train/0/trajectories/2").await.json();
    assert_eq!((&over["outcome"], over["steps"].as_array().unwrap().len()), (&json!("success"), 6));
    let overview = ask(&place, "/api/iterations/train/0").await.json();
    assert_eq!((&overview["trajectories"], &overview["begun"]), (&json!(3), &json!(0)));
}

#[tokio::test]
async fn a_broken_file_is_named_and_hides_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = viewdata::small(directory.path());
    let rank = |rank| save_path.iteration_file(IterationId::new(Split::Test, 1).with_rank(Some(rank)));
    std::fs::copy(save_path.iteration_file(IterationId::new(Split::Test, 0)), rank(0)).unwrap();
    std::fs::write(rank(1), b"not a file of trajectories").unwrap();
    let place = serve(&save_path, &[]).await;
    let table = ask(&place, "/api/iterations/test/1/trajectories").await.json();
    assert_eq!(table["key"].as_array().unwrap().len(), 4);
    assert!(table["problems"][0].as_str().unwrap().contains("iteration1_rank_1"), "{}", table["problems"]);
    assert_eq!(ask(&place, "/api/curves").await.status, 200);
}

/// As the Python system leaves its files: no table of contents, indices that repeat, things missing.
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
async fn files_of_the_python_system_are_shown_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    save_path.create_directories(Split::Train).unwrap();
    std::fs::create_dir_all(save_path.images().join("a")).unwrap();
    std::fs::write(save_path.images().join("a/step_000.png"), viewdata::picture(9)).unwrap();
    let file = save_path.iteration_file(IterationId::new(Split::Train, 0));
    python::run(&python::with_module("pickle"), PYTHON, &[&file]);
    let place = serve(&save_path, &[]).await;
    let table = ask(&place, "/api/iterations/train/0/trajectories").await.json();
    assert_eq!(table["key"], json!(["2", "3", "3~1"]), "an index that repeats still has names that do not");
    assert_eq!(table["outcome"]["rows"], json!([0, 1, 0]));
    let first = ask(&place, "/api/iterations/train/0/trajectories/3").await.json();
    assert_eq!((&first["task"]["task_name"], &first["outcome"]), (&json!("first"), &json!("success")));
    assert_eq!((&first["is_outcome_recorded"], &first["answer"]), (&json!(false), &json!("42")));
    let moved = ask(&place, "/api/iterations/train/0/trajectories/3/steps/0/screenshot").await;
    assert_eq!(moved.body, viewdata::picture(9), "found where the images lie now");
    let second = ask(&place, "/api/iterations/train/0/trajectories/3~1").await.json();
    assert_eq!(second["task"]["task_name"], "second");
    assert!(second["steps"][0]["screenshot_problem"].as_str().unwrap().contains("none was recorded"));
}

#[tokio::test]
async fn curves_come_as_numbers_and_as_pictures() {
    let directory = tempfile::tempdir().unwrap();
    let place = serve(&viewdata::small(directory.path()), &[]).await;
    let curves = ask(&place, "/api/curves?ema=0.5").await.json();
    assert_eq!((curves["charts"].as_array().unwrap().len(), &curves["trajectories"]), (9, &json!(24)));
    let success = &curves["charts"][0]["series"][0];
    assert_eq!(
        (&success["split"], &success["line"], &success["values"]),
        (&json!("train"), &json!("overall"), &json!([0.5, 0.5]))
    );
    assert_eq!(success["smoothed"], json!([0.5, 0.5]));
    let svg = ask(&place, "/api/plots.svg").await;
    assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
    assert!(svg.text().contains("Success rate") && svg.text().ends_with("</svg>\n"));
    let png = ask(&place, "/api/plots.png").await;
    assert!(png.body.starts_with(b"\x89PNG"));
    let empty = tempfile::tempdir().unwrap();
    let place = serve(&SavePath::new(empty.path()), &[]).await;
    let nothing = ask(&place, "/api/curves").await;
    assert_eq!((nothing.status, &nothing.json()["code"]), (404, &json!("nothing_to_plot")));
}

#[tokio::test]
async fn beyond_loopback_nothing_is_shown_without_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(viewdata::small(directory.path()), Vec::new());
    let place = page::serve(([0, 0, 0, 0], 0).into(), None, router(view)).await.unwrap();
    let local = |path: &str| path.to_owned();
    for path in ["/", "/api/iterations", "/api/iterations/train/0/trajectories/1/steps/2/screenshot"] {
        assert_eq!(ask(&place, &local(path)).await.status, 401, "{path}");
    }
    let token = place.link().split_once("?token=").unwrap().1.to_owned();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(ask_with(&place, "/api/iterations", &bearer).await.status, 200);
}
