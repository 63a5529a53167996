//! The chat API of the server, used by the collector's model client and over plain HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod common;

use std::{net::Ipv4Addr, time::Duration};

use baseline::Server;
use client::{
    chat::{ChatRequest, Message, ModelClient, ModelOptions, Role},
    http::Deadline,
};
use common::{Episode, TestPage};
use proto::InteractionMode;
use rollout::{
    config::{ModelType, PromptVersion},
    policy::{Reply, text_form},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const PAGE: TestPage = TestPage {
    title: "Spelt loaf · Old Mill",
    url: "http://site.test/p/7",
    elements: "a Old Mill",
    text: Some("Spelt loaf\n$4.80"),
};

fn server() -> Server {
    Server::start((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
}

fn request() -> Value {
    Episode::new("What is the price of the Spelt loaf?", 5).request(&PAGE)
}

/// Sends one request on a new connection; returns status and body.
async fn exchange(server: &Server, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(server.addr()).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").expect("a response with headers");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Ok((status, body.to_owned()))
}

async fn post(server: &Server, body: String) -> (u16, Value) {
    let (status, response) = exchange(server, "POST", "/v1/chat/completions", &body).await.unwrap();
    (status, serde_json::from_str(&response).unwrap())
}

async fn get(server: &Server, path: &str) -> u16 {
    exchange(server, "GET", path, "").await.unwrap().0
}

#[tokio::test]
async fn collector_client_gets_a_completion() {
    let server = server();
    let client = ModelClient::vllm(&server.url(), ModelOptions::default()).unwrap();
    let chosen = client.choose_model(None, Duration::from_secs(10)).await.unwrap();
    assert_eq!(chosen, baseline::MODEL);
    let text = request()["messages"][1]["content"][0]["text"].as_str().unwrap().to_owned();
    let request = ChatRequest {
        model: baseline::MODEL.to_owned(),
        messages: vec![Message::text(Role::User, text)],
        temperature: Some(1.0),
        top_k: Some(2),
        max_tokens: Some(3072),
        logprobs: true,
        return_token_ids: true,
        ..ChatRequest::default()
    };
    let completion = client.complete(request, Deadline::after(Duration::from_secs(10))).await.unwrap();
    let reply = Reply::parse(&completion.text, InteractionMode::SetOfMarks);
    assert_eq!(text_form(&reply.action), "ANSWER [$4.80]");
    assert_eq!((completion.finish_reason.as_deref(), completion.logprobs), (Some("stop"), None));
    let usage = completion.usage.unwrap();
    assert!(usage.prompt_tokens > 10 && usage.completion_tokens > 5, "{usage:?}");
}

#[tokio::test]
async fn completion_has_the_openai_format() {
    let server = server();
    let (status, answer) = post(&server, request().to_string()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["object"], &answer["model"]), (&json!("chat.completion"), &json!(baseline::MODEL)));
    assert!(
        answer["id"].as_str().unwrap().starts_with("chatcmpl-")
            && answer["created"].as_u64().unwrap() > 1_700_000_000
    );
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["index"], &choice["finish_reason"], &choice["message"]["role"]),
        (&json!(0), &json!("stop"), &json!("assistant"))
    );
    assert_eq!(choice["message"]["content"], json!(baseline::reply(&request()).unwrap()));
    let usage = &answer["usage"];
    assert_eq!(
        usage["total_tokens"].as_u64(),
        Some(usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap())
    );
    let (_, repeated) = post(&server, request().to_string()).await;
    assert_ne!(answer["id"], repeated["id"]);
    assert_eq!(answer["choices"], repeated["choices"]);
}

#[tokio::test]
async fn reasoning_is_returned_separately() {
    let server = server();
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 5);
    episode.prompting.model_type = ModelType::Think;
    let request = episode.request(&PAGE);
    let (_, answer) = post(&server, request.to_string()).await;
    let message = &answer["choices"][0]["message"];
    assert!(message["reasoning_content"].as_str().unwrap().contains("$4.80"));
    assert!(message["content"].as_str().unwrap().starts_with("Memory: "));
    let whole = baseline::reply(&request).unwrap();
    let reply = Reply::parse(&whole, InteractionMode::SetOfMarks);
    assert!(whole.starts_with("<think>") && reply.thinking.contains("because") && reply.problem.is_none());
}

#[test]
fn reply_has_the_parts_of_the_prompt_version() {
    let complete = baseline::reply(&request()).unwrap();
    let heads: Vec<&str> =
        complete.lines().filter_map(|line| line.split_once(": ")).map(|(head, _)| head).take(4).collect();
    assert_eq!(heads, ["Memory", "Progress", "Intention", "Action"]);
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 5);
    episode.prompting.version = PromptVersion::Vanilla;
    let vanilla = baseline::reply(&episode.request(&PAGE)).unwrap();
    assert!(
        vanilla.starts_with("Action: answer “$4.80”\n<tool_call>\n") && vanilla.ends_with("\n</tool_call>"),
        "{vanilla}"
    );
    let call: Value = serde_json::from_str(vanilla.lines().nth(2).unwrap()).unwrap();
    assert_eq!(call, json!({"name": "web_interaction", "arguments": {"action": "answer", "text": "$4.80"}}));
}

#[test]
fn coordinate_mode_gives_up_without_elements() {
    let mut episode = Episode::new("What is the price of the Spelt loaf?", 5);
    episode.prompting.mode = InteractionMode::Coordinates;
    let actions: Vec<String> = (0..3).map(|_| text_form(&episode.act(&PAGE))).collect();
    assert_eq!(actions[..2], ["Scroll [down]", "Scroll [down]"]);
    assert!(
        actions[2].starts_with("ANSWER [I cannot tell: I read numbered elements and text, not images."),
        "{actions:?}"
    );
}

#[tokio::test]
async fn invalid_requests_are_explained() {
    let server = server();
    for (body, status, message, parameter) in [
        ("{".to_owned(), 400, "not JSON", Value::Null),
        ("[]".to_owned(), 400, "must be a JSON object", Value::Null),
        (json!({"model": "baseline"}).to_string(), 400, "messages must be a list", json!("messages")),
        (
            json!({"messages": [{"role": "x", "content": ""}]}).to_string(),
            400,
            "messages[0].role",
            json!("messages"),
        ),
        (
            json!({"stream": true, "messages": [{"role": "user", "content": ""}]}).to_string(),
            400,
            "stream",
            json!("stream"),
        ),
        (
            json!({"model": "gpt", "messages": []}).to_string(),
            404,
            "the model \"gpt\" does not exist",
            json!("model"),
        ),
    ] {
        let (got, answer) = post(&server, body.clone()).await;
        let error = &answer["error"];
        assert!(
            got == status && error["message"].as_str().unwrap().contains(message),
            "{body}: {got} {answer}"
        );
        assert_eq!((&error["code"], &error["param"]), (&json!(status), &parameter), "{body}");
        assert!(error["type"].as_str().unwrap().ends_with("Error"));
    }
    assert_eq!(get(&server, "/v2/nothing").await, 404);
    assert_eq!(get(&server, "/v1/chat/completions").await, 405);
    assert_eq!(get(&server, "/health").await, 200);
}

#[tokio::test]
async fn images_in_requests_are_ignored() {
    let server = server();
    let mut with_image = request();
    let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{}", "A".repeat(8 << 20))}});
    with_image["messages"][1]["content"].as_array_mut().unwrap().push(image);
    let (status, answer) = post(&server, with_image.to_string()).await;
    assert_eq!(status, 200);
    assert_eq!(answer["choices"][0]["message"]["content"], json!(baseline::reply(&request()).unwrap()));
}

#[tokio::test]
async fn server_stops_when_dropped_or_stopped() {
    let dropped = server();
    let addr = dropped.addr();
    assert_eq!(get(&dropped, "/health").await, 200);
    drop(dropped);
    let refused = async {
        while TcpStream::connect(addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), refused).await.expect("the server stops");
    let stopped = server();
    let addr = stopped.addr();
    stopped.stop().await.unwrap();
    assert!(std::net::TcpStream::connect(addr).is_err());
}
