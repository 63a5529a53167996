//! Requests and settings that cannot work are refused with a reason.

use hyper::Method;
use testkit::{Http, Webgym, sim_farm::SimFarmOptions, sim_model::ModelReply};

use crate::harness::{LIMIT, StreamTest, answer_at_second_step, assert_success};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_requests_are_refused_with_a_reason() {
    let test = StreamTest::new(2, SimFarmOptions::default(), answer_at_second_step).await;
    let (mut webgym, consumer) = test.start(&[]).await;
    let items = consumer.take(2).await;
    let cursor = items[1]["cursor"].as_str().unwrap();
    let (run, _) = cursor.split_once('-').unwrap();
    let later = format!("{run}-3");
    let http = &consumer.http;
    let get = async |query: &[(&str, &str)]| http.get("/stream", query).await;
    get(&[("after", "x")]).await.assert_error(400, "invalid_request", "\"x\" is not a cursor");
    get(&[("after", "00000000-1")]).await.assert_error(409, "other_run", &format!("start with {run}-"));
    get(&[("after", &later)]).await.assert_error(409, "no_such_item", "has 2 items so far");
    get(&[("limit", "0")]).await.assert_error(400, "invalid_request", "from 1");
    get(&[("limit", "many")]).await.assert_error(400, "invalid_request", "limit is \"many\"");
    get(&[("format", "xml")]).await.assert_error(400, "invalid_request", "ndjson or msgpack");
    get(&[("wait", "-1")]).await.assert_error(400, "invalid_request", "from 0 to 3600");
    get(&[("images", "2")]).await.assert_error(400, "invalid_request", "true or false");
    get(&[("cursor", cursor)]).await.assert_error(400, "invalid_request", "accepted: after, limit");
    let post = async |path: &str, query: &[(&str, &str)]| http.post(path, query).await;
    post("/ack", &[]).await.assert_error(400, "invalid_request", "cursor is missing");
    post("/ack", &[("cursor", &later)]).await.assert_error(409, "no_such_item", &later);
    post("/pause", &[("deadline", "3601")]).await.assert_error(400, "invalid_request", "from 0 to 3600");
    post("/pause", &[("seconds", "1")]).await.assert_error(
        400,
        "invalid_request",
        "accepted: deadline, wait",
    );
    http.get("/pause", &[]).await.assert_error(405, "method_not_allowed", "POST /ack");
    http.get("/nothing", &[]).await.assert_error(404, "not_found", "GET /stream");
    let origin = [("origin", "http://evil.test")];
    http.send(Method::POST, "/resume", &[], "", &origin).await.assert_error(403, "forbidden", "web pages");
    let status = consumer.status().await;
    assert_eq!(
        (&status["acknowledged"], &status["is_paused"]),
        (&0.into(), &false.into()),
        "nothing happened"
    );
    consumer.acknowledge(&items[1]).await;
    assert_success(&mut webgym).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_is_required_outside_loopback() {
    let test = StreamTest::new(1, SimFarmOptions::default(), |_| ModelReply::answer("42")).await;
    let mut webgym = test.spawn(&["--stream", "--stream-port=0", "--stream-host=0.0.0.0"]);
    let event = webgym.wait_for_event("listening").await;
    let token = event["token"].as_str().expect("a generated token is printed").to_owned();
    let http = Http::new(&format!("http://127.0.0.1:{}", event["port"]), None);
    for path in ["/stream", "/status"] {
        http.get(path, &[]).await.assert_error(401, "unauthorized", "Authorization: Bearer");
    }
    let wrong = [("authorization", "Bearer wrong")];
    http.send(Method::POST, "/pause", &[], "", &wrong).await.assert_error(401, "unauthorized", "wrong");
    let bearer = format!("Bearer {token}");
    let right = [("authorization", bearer.as_str())];
    let reply = http.send(Method::GET, "/stream", &[("limit", "1")], "", &right).await;
    let cursor = crate::harness::lines(&reply)[0]["cursor"].as_str().unwrap().to_owned();
    let reply = http.send(Method::POST, "/ack", &[("cursor", &cursor)], "", &right).await;
    assert_eq!(reply.ok()["acknowledged"], 1);
    assert_success(&mut webgym).await;
}

async fn assert_refused(mut webgym: Webgym, reason: &str) {
    let status = webgym.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(1), "{}", webgym.log());
    assert!(webgym.log().contains(reason), "{reason:?} not in {}", webgym.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_cannot_work_are_refused() {
    let test = StreamTest::new(1, SimFarmOptions::default(), |_| ModelReply::answer("42")).await;
    let stale = ["env_config.max_staleness=1", "env_config.stream_batch=2"];
    assert_refused(test.spawn(&stale), "can be acknowledged only with --stream").await;
    let alone = ["--stream", "env_config.max_staleness=1"];
    assert_refused(test.spawn(&alone), "needs env_config.stream_batch").await;
    let zero = ["--stream", "env_config.stream_batch=0"];
    assert_refused(test.spawn(&zero), "must be at least 1, not 0").await;
    let queue = ["--stream", "--stream-port=0", "env_config.work_queue=redis://127.0.0.1:1"];
    assert_refused(test.spawn(&queue), "--stream cannot be used with env_config.work_queue").await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--stream-port={}", taken.local_addr().unwrap().port());
    assert_refused(test.spawn(&["--stream", &port]), "is in use").await;
    assert!(!test.save_path().root().exists(), "nothing was started");
}

/// The program that started the run is killed; the run ends by itself and releases its browsers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_ends_with_its_parent() {
    let test = StreamTest::new(1, SimFarmOptions::default(), |_| ModelReply::Never).await;
    let parent = test.spawn_in_shell("\"$0\" \"$@\" --exit-with-parent=$$; true");
    testkit::eventually("an episode asks the policy", LIMIT, async || test.policy.count() > 0).await;
    let run = testkit::descendants(parent.pid()).first().expect("the run").pid;
    parent.signal(rustix::process::Signal::KILL);
    let is_gone = || !testkit::processes().iter().any(|process| process.pid == run && !process.zombie);
    testkit::eventually("the run ends", LIMIT, async || is_gone()).await;
    assert_eq!(test.farm.active_leases(), Vec::<String>::new());
}
