//! Every finished trajectory is delivered, with a cursor that always names the same one, also after the consumer or the collector was killed.

use std::{collections::BTreeMap, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{
    sim_farm::{Fault, SimFarmOptions},
    sim_model::ModelReply,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{LIMIT, StreamTest, answer_at_second_step, assert_success, index};

const TASKS: i64 = 40;

/// What a consumer that survives has seen: cursor → trajectory.
#[derive(Default)]
struct Seen {
    items: BTreeMap<String, i64>,
    last: Option<String>,
    before_last: Option<String>,
    is_over: bool,
}

impl Seen {
    fn add(&mut self, items: &[Value]) {
        for item in items {
            match item["type"].as_str().unwrap() {
                "heartbeat" => {}
                "end" => self.is_over = item["reason"] == "finished",
                _ => {
                    let cursor = item["cursor"].as_str().unwrap().to_owned();
                    let before = self.items.insert(cursor.clone(), index(item));
                    assert!(before.is_none_or(|before| before == index(item)), "{cursor} names two items");
                    self.before_last = self.last.replace(cursor);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_collector_delivers_everything_by_cursor() {
    let script = |call: &testkit::sim_farm::Call| {
        let is_lost = call.lease % 7 == 3 && call.runs("click_coords");
        if is_lost { Fault::InstanceLost } else { Fault::None }
    };
    let farm = SimFarmOptions { latency: Duration::from_millis(5), ..SimFarmOptions::default() };
    let test = StreamTest::new(TASKS as usize, farm.with_script(script), answer_at_second_step).await;
    let (mut seen, mut kills, mut random) = (Seen::default(), 0, 0x9e37_79b9_u64);
    while !seen.is_over {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let kill_at = seen.items.len() + 1 + (random >> 33) as usize % 2;
        // The run cannot finish unseen: at most four items are started and not acknowledged.
        let limit = ["env_config.max_staleness=0", "env_config.stream_batch=4"];
        let (mut webgym, consumer) = test.start(&limit).await;
        loop {
            if kills < 6 && seen.items.len() >= kill_at {
                kills += 1;
                webgym.signal(Signal::KILL);
                webgym.wait_for_exit(LIMIT).await;
                break;
            }
            let after: Vec<(&str, &str)> = seen.last.iter().map(|last| ("after", last.as_str())).collect();
            let query: Vec<(&str, &str)> = after.into_iter().chain([("wait", "0.05")]).collect();
            let items = consumer.try_read(&query).await.unwrap();
            seen.add(&items);
            if seen.is_over {
                // The run may have ended already, if that was acknowledged before.
                let last = [("cursor", seen.last.as_deref().unwrap())];
                let _ = consumer.http.try_send(hyper::Method::POST, "/ack", &last, "", &[]).await;
                assert_success(&mut webgym).await;
                break;
            }
            // Acknowledges all but the latest item.
            if let Some(before) = seen.before_last.clone() {
                consumer.acknowledge(&json!({"cursor": before})).await;
            }
        }
    }
    assert_eq!(kills, 6, "the run was killed before it finished");
    let mut delivered: Vec<i64> = seen.items.values().copied().collect();
    delivered.sort_unstable();
    assert_eq!(delivered, (0..TASKS).collect::<Vec<_>>());
    assert_eq!(test.iteration().summaries().len(), delivered.len());
    assert_eq!(test.other_files(), Vec::<String>::new(), "journal and acknowledgments are removed");
}

/// A consumer that is killed loses nothing: what it did not acknowledge is delivered to the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_consumer_is_continued_at_its_acknowledgment() {
    let test = StreamTest::new(6, SimFarmOptions::default(), answer_at_second_step).await;
    let (mut webgym, consumer) = test.start(&[]).await;
    let first = consumer.take(3).await;
    // Reads a part of an item, then its connection breaks.
    let address = webgym.url("stream").trim_start_matches("http://").to_owned();
    let mut killed = tokio::net::TcpStream::connect(&address).await.unwrap();
    killed.write_all(b"GET /stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.unwrap();
    killed.read_exact(&mut [0; 700]).await.unwrap();
    drop(killed);
    assert_eq!(consumer.take(3).await, first, "nothing was acknowledged");
    let reply = consumer.acknowledge(&first[1]).await;
    assert_eq!(reply["acknowledged"], 2);
    assert_eq!(consumer.take(1).await[0], first[2]);
    consumer.acknowledge(&first[0]).await;
    assert_eq!(consumer.take(1).await[0], first[2], "an earlier acknowledgment changes nothing");
    // The collector is killed too; the acknowledgment is durable.
    webgym.signal(Signal::KILL);
    webgym.wait_for_exit(LIMIT).await;
    let (mut webgym, consumer) = test.start(&[]).await;
    let rest = consumer.take(4).await;
    assert_eq!(rest[0], first[2]);
    consumer.acknowledge(&rest[3]).await;
    assert_success(&mut webgym).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_stream_does_not_delay_the_run() {
    let test = StreamTest::new(12, SimFarmOptions::default(), answer_at_second_step).await;
    let (mut webgym, _) = test.start(&["env_config.stream_linger=0"]).await;
    let address = webgym.url("stream").trim_start_matches("http://").to_owned();
    let mut silent = tokio::net::TcpStream::connect(&address).await.unwrap();
    silent.write_all(b"GET /stream?images=true HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.unwrap();
    assert_success(&mut webgym).await;
    assert!(webgym.log().contains("12 items of the stream were not acknowledged"), "{}", webgym.log());
    assert_eq!(test.iteration().summaries().len(), 12);
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_run_waits_for_its_consumer() {
    let test = StreamTest::new(5, SimFarmOptions::default(), answer_at_second_step).await;
    let (mut webgym, consumer) = test.start(&[]).await;
    let status = consumer.status_when("the run has finished", |status| status["state"] == "finished").await;
    assert_eq!(
        (&status["available"], &status["acknowledged"], &status["total"]),
        (&json!(5), &json!(0), &json!(5))
    );
    assert!(webgym.is_running() && !test.save_path().iteration_file(crate::harness::ID).exists());
    // Killed while it waits: the next start has nothing to collect, and still delivers.
    webgym.signal(Signal::KILL);
    webgym.wait_for_exit(LIMIT).await;
    let (mut webgym, consumer) = test.start(&[]).await;
    let items = consumer.read(&[]).await;
    assert_eq!(items.len(), 6);
    assert_eq!(items[5], json!({"type": "end", "reason": "finished", "detail": null}));
    consumer.acknowledge(&items[4]).await;
    assert_success(&mut webgym).await;
    assert!(!webgym.log().contains("not acknowledged within"), "{}", webgym.log());
}

/// A run that is stopped while it waits for its consumer is not finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_run_delivers_the_rest_when_resumed() {
    let test = StreamTest::new(3, SimFarmOptions::default(), answer_at_second_step).await;
    let (mut webgym, consumer) = test.start(&[]).await;
    consumer.status_when("the run has finished", |status| status["state"] == "finished").await;
    let first = consumer.take(1).await.remove(0);
    consumer.acknowledge(&first).await;
    webgym.signal(Signal::TERM);
    let status = webgym.wait_for_exit(LIMIT).await;
    assert_eq!(status.code(), Some(3), "{}", webgym.log());
    assert!(webgym.log().contains("2 items of the stream are not acknowledged"), "{}", webgym.log());
    let (mut webgym, consumer) = test.start(&[]).await;
    let rest = consumer.take(2).await;
    assert!(rest.iter().all(|item| item["cursor"] != first["cursor"]));
    consumer.acknowledge(&rest[1]).await;
    assert_success(&mut webgym).await;
}

/// What is delivered has the same content as the file of the iteration, in both formats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_has_everything_that_the_iteration_file_has() {
    let reply = |_: &testkit::sim_model::ModelRequest| {
        ModelReply::Json(
            200,
            json!({"prompt_token_ids": [1, 2, 3], "choices": [{
                "message": {"content": "Action: answer\n<tool_call>\n{\"name\": \"computer_use\", \"arguments\": {\"action\": \"answer\", \"text\": \"42\"}}\n</tool_call>"},
                "finish_reason": "stop", "token_ids": [4, 5],
                "logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -0.25}]},
            }]}),
        )
    };
    let test = StreamTest::new(1, SimFarmOptions::default(), reply).await;
    let (mut webgym, consumer) = test.start(&["policy_config.version=v7"]).await;
    let item = consumer.read(&[("limit", "1")]).await.remove(0);
    let headers = [("accept", "application/msgpack")];
    let packed = consumer
        .http
        .send(hyper::Method::GET, "/stream", &[("limit", "1"), ("images", "1")], "", &headers)
        .await;
    assert_eq!(packed.content_type(), "application/msgpack");
    consumer.acknowledge(&item).await;
    assert_success(&mut webgym).await;
    let saved = test.iteration().read(0).unwrap();
    let sent = &item["trajectory"];
    assert_eq!(sent["steps"], serde_json::to_value(&saved.steps).unwrap());
    assert_eq!(sent["task"], serde_json::to_value(&saved.task).unwrap());
    assert_eq!(sent["metadata"], serde_json::to_value(&saved.metadata).unwrap());
    assert_eq!((&sent["outcome"], &sent["reward"]), (&json!("success"), &json!(1)));
    assert_eq!(sent["policy_versions"], json!(["v7"]));
    assert!(sent["steps"][0]["response"]["raw_prompt"].as_str().unwrap().contains("task number 0"));
    assert_eq!(sent["steps"][0]["extras"]["token_ids"], json!([4, 5]), "{}", sent["steps"][0]["extras"]);
    let screenshot = std::fs::read(&saved.steps[0].observation.image_path).unwrap();
    assert!(
        packed.body.windows(screenshot.len()).any(|window| window == screenshot),
        "the screenshot is in the reply"
    );
}
