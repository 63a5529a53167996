//! Messages that break the protocol, and the pages that describe the environment.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::Server;

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_have_their_error_and_the_session_goes_on() {
    let server = Server::start(&["--max-message-kib=16"]).await;
    let mut client = server.client().await;
    for (text, code) in [
        ("{", "INVALID_JSON"),
        ("[]", "VALIDATION_ERROR"),
        (r#"{"type":"dance","data":{}}"#, "UNKNOWN_TYPE"),
        (r#"{"type":"step","data":{"answer":"42"}}"#, "EXECUTION_ERROR"),
        (r#"{"type":"reset","data":{"task_id":"nope"}}"#, "VALIDATION_ERROR"),
        (r#"{"type":"reset","data":{"split":"dev"}}"#, "VALIDATION_ERROR"),
    ] {
        client.send_text(text).await;
        let response = client.receive().await.unwrap();
        assert_eq!(response["data"]["code"], code, "{text}: {response}");
    }
    let state = client.ask("state", &Value::Null).await;
    assert_eq!(state["data"], json!({"episode_id": null, "step_count": 0}));
    client.observe("reset", &json!({})).await;
    client.send_text(r#"{"type":"close"}"#).await;
    assert_eq!(client.receive().await, Err(Some(1000)));
    server.wait_until_released().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_over_the_limit_closes_the_connection_and_releases_the_browser() {
    let server = Server::start(&["--max-message-kib=16"]).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({})).await;
    client.send("step", &json!({"answer": "x".repeat(20 << 10)})).await;
    assert_eq!(client.receive().await, Err(Some(1009)));
    server.wait_until_released().await;
    let mut binary = server.client().await;
    binary.send_binary(b"{}").await;
    assert_eq!(binary.receive().await, Err(Some(1003)));
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_sent_at_once_are_answered_in_order() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({"screenshot": "none"})).await;
    for _ in 0..3 {
        client.send("step", &json!({"action_str": "noop(10)"})).await;
    }
    for count in 1..=3 {
        let response = client.receive().await.unwrap();
        assert_eq!(response["data"]["metadata"]["step_count"], count);
    }
    for _ in 0..40 {
        client.send("step", &json!({"action_str": "noop(60000)"})).await;
    }
    assert_eq!(client.receive().await, Err(Some(1008)), "a client that never waits is disconnected");
    server.wait_until_released().await;
}

/// A connection that is dropped with unread input is reset, and many clients then lose the close frame.
#[tokio::test(flavor = "multi_thread")]
async fn connection_with_unread_input_is_closed_without_reset() {
    let server = Server::start(&[]).await;
    let address = server.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        received.push(stream.read_u8().await.unwrap());
    }
    // The first binary message ends the session; the others are more than the server reads at once.
    let binary_message = [0x82, 0x81, 0, 0, 0, 0, b'x'];
    stream.write_all(&binary_message.repeat(20_000)).await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.expect("an orderly end");
    let code = 1003_u16.to_be_bytes();
    assert!(received.windows(2).any(|bytes| bytes == code), "{received:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_describe_the_environment_and_its_tasks() {
    let server = Server::start(&[]).await;
    let http = server.http();
    assert_eq!(http.get("/health", &[]).await.json(), json!({"status": "healthy"}));
    assert_eq!(http.get("/readyz", &[]).await.status, 200);
    assert_eq!(http.get("/metadata", &[]).await.json()["name"], "webgym");
    assert_eq!(http.get("/schema", &[]).await.json()["action"]["required"], json!(["action_str"]));
    assert_eq!(http.get("/list_environments", &[]).await.json(), json!(["webgym"]));
    assert_eq!(http.get("/webgym/splits", &[]).await.json(), json!([{"name": "train", "type": "train"}]));
    assert_eq!(http.get("/other/splits", &[]).await.status, 404);
    let post = async |path: &str, body: Value| http.post_json(path, &[], &body).await;
    let split = json!({"split": "train"});
    assert_eq!(post("/webgym/num_tasks", split.clone()).await.json(), json!({"num_tasks": 3}));
    let tasks = post("/webgym/tasks", split).await.text();
    assert!(
        tasks.contains("look at shop") && !tasks.contains("42"),
        "the reference answer is not shown: {tasks}"
    );
    let last = post("/webgym/task", json!({"split": "train", "index": -1})).await.json();
    assert_eq!(last["task"]["task_id"], "button");
    assert_eq!(post("/webgym/task", json!({"split": "train", "index": 3})).await.status, 400);
    assert_eq!(post("/webgym/num_tasks", json!({"split": "dev"})).await.status, 400);
    let range = post("/webgym/task_range", json!({"split": "train", "start": 1, "stop": 9})).await.json();
    assert_eq!(range["tasks"].as_array().unwrap().len(), 2);
}
