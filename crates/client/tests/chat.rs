//! The model client against real HTTP servers: what it sends, what it makes of every kind of trouble.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use client::{
    chat::{ChatRequest, Completion, Images, Message, ModelClient, ModelError, ModelOptions, Part, Role},
    http::{Deadline, RetryPolicy},
};
use serde_json::{Value, json};
use support::{Answer, Server, json as answer, nobody, say};

fn options() -> ModelOptions {
    let retry = RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    ModelOptions { retry, ..ModelOptions::default() }
}

fn good() -> Answer {
    answer(
        200,
        &json!({"choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}),
    )
}

fn request() -> ChatRequest {
    ChatRequest {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "hi")],
        ..ChatRequest::default()
    }
}

async fn ask(url: &str, options: ModelOptions) -> Result<Completion, ModelError> {
    let client = ModelClient::vllm(url, options).unwrap();
    client.complete(request(), Deadline::after(Duration::from_secs(20))).await
}

#[tokio::test]
async fn policy_request_has_every_field() {
    let server = Server::start(vec![good()]).await;
    let client = ModelClient::vllm(&format!("{}/", server.url()), options()).unwrap();
    let request = ChatRequest {
        model: "org/model".into(),
        temperature: Some(1.0),
        top_p: Some(0.99),
        top_k: Some(2),
        min_p: Some(0.0),
        max_tokens: Some(3072),
        logprobs: true,
        return_token_ids: true,
        ..request()
    };
    let got = client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    assert_eq!((got.text.as_str(), got.finish_reason.as_deref()), ("hello", Some("stop")));
    let asked = &server.asked()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(asked.header("content-type"), "application/json");
    assert_eq!(asked.header("authorization"), "");
    assert_eq!(
        asked.json(),
        json!({
            "model": "org/model", "temperature": 1.0, "top_p": 0.99, "top_k": 2, "min_p": 0.0, "max_tokens": 3072,
            "logprobs": true, "return_token_ids": true,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        })
    );
}

#[tokio::test]
async fn openai_request_has_key_and_standard_fields_only() {
    let server = Server::start(vec![good()]).await;
    let base = format!("{}/v1beta/openai/", server.url());
    let client = ModelClient::openai(&base, Some("sk-1"), options()).unwrap();
    let mut request = request();
    request.extra.insert("max_completion_tokens".into(), json!(9));
    client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1beta/openai/chat/completions");
    assert_eq!(asked.header("authorization"), "Bearer sk-1");
    let keys: Vec<String> = asked.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["model", "max_completion_tokens", "messages"]);
    assert!(!format!("{client:?}").contains("sk-1"));
}

fn with_picture(folder: &std::path::Path) -> ChatRequest {
    let path = folder.join("a b.png");
    std::fs::write(&path, b"\x89PNG\r\n\x1a\nrest").unwrap();
    let message = Message { role: Role::User, content: vec![Part::Image(path)] };
    ChatRequest { messages: vec![message], ..request() }
}

fn picture_address(body: &Value) -> String {
    body["messages"][0]["content"][0]["image_url"]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn images_are_sent_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let request = with_picture(folder.path());
    let server = Server::start(vec![good()]).await;
    for images in [Images::File, Images::Data] {
        let client = ModelClient::vllm(&server.url(), ModelOptions { images, ..options() }).unwrap();
        client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    }
    let asked = server.asked();
    let file = picture_address(&asked[0].json());
    assert!(file.starts_with("file:///") && file.ends_with("/a%20b.png"), "{file}");
    assert_eq!(picture_address(&asked[1].json()), "data:image/png;base64,iVBORw0KGgpyZXN0");
}

#[tokio::test]
async fn images_are_inlined_after_file_url_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let request = with_picture(folder.path());
    let server = Server::start(vec![answer(400, &json!({"error": "no local media"})), good()]).await;
    let client =
        ModelClient::vllm(&server.url(), ModelOptions { images: Images::Auto, ..options() }).unwrap();
    for _ in 0..2 {
        client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    }
    let ways: Vec<bool> =
        server.asked().iter().map(|asked| picture_address(&asked.json()).starts_with("data:")).collect();
    assert_eq!(ways, [false, true, true]);
}

#[tokio::test]
async fn refusal_for_another_reason_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let request = with_picture(folder.path());
    let server = Server::start(vec![answer(400, &json!({"error": "context too long"}))]).await;
    let client = ModelClient::vllm(&server.url(), options()).unwrap();
    let problem =
        client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap_err();
    assert!(
        matches!(&problem, ModelError::Refused { status: 400, body } if body.contains("context too long")),
        "{problem}"
    );
    assert!(!problem.is_infrastructure());
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn missing_image_is_named_in_the_error() {
    let missing = Message { role: Role::User, content: vec![Part::Image("/none/here.png".into())] };
    let request = ChatRequest { messages: vec![missing], ..request() };
    let client =
        ModelClient::vllm("http://127.0.0.1:1", ModelOptions { images: Images::Data, ..options() }).unwrap();
    let problem =
        client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap_err();
    assert!(problem.to_string().contains("/none/here.png"), "{problem}");
}

#[tokio::test]
async fn temporary_failure_is_retried() {
    for trouble in [
        say(500, "text/plain", "oops"),
        say(503, "text/html", "<html>busy</html>"),
        say(408, "text/plain", ""),
        Answer::BreakOff,
        Answer::Say { status: 429, headers: vec![("retry-after", "0".into())], body: vec![] },
    ] {
        let server = Server::start(vec![trouble.clone(), good()]).await;
        let got = ask(&server.url(), options()).await;
        assert_eq!(got.unwrap().text, "hello", "{trouble:?}");
        assert_eq!(server.asked().len(), 2, "{trouble:?}");
    }
}

#[tokio::test]
async fn lasting_failure_is_returned_after_retries() {
    let server = Server::start(vec![say(502, "text/html", "<h1>Bad   Gateway</h1>")]).await;
    let problem = ask(&server.url(), options()).await.unwrap_err();
    assert!(
        matches!(&problem, ModelError::Refused { status: 502, body } if body == "<h1>Bad Gateway</h1>"),
        "{problem}"
    );
    assert!(problem.is_infrastructure());
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn permanent_failure_is_not_retried() {
    type IsRight = fn(&ModelError) -> bool;
    let cases: [(Answer, IsRight); 3] = [
        (say(404, "application/json", "{}"), |p| matches!(p, ModelError::Refused { status: 404, .. })),
        (say(302, "text/plain", ""), |p| matches!(p, ModelError::Redirected { status: 302, .. })),
        (say(413, "text/plain", "too long"), |p| matches!(p, ModelError::Refused { status: 413, .. })),
    ];
    for (trouble, is_right) in cases {
        let server = Server::start(vec![trouble.clone()]).await;
        let problem = ask(&server.url(), options()).await.unwrap_err();
        assert!(is_right(&problem), "{trouble:?}: {problem:?}");
        assert_eq!(server.asked().len(), 1, "{trouble:?}");
    }
}

#[tokio::test]
async fn json_with_wrong_content_type_is_accepted() {
    let body = json!({"choices": [{"message": {"content": "hello"}}]}).to_string();
    let server = Server::start(vec![say(200, "text/plain", body)]).await;
    assert_eq!(ask(&server.url(), options()).await.unwrap().text, "hello");
}

#[tokio::test]
async fn oversized_response_is_rejected() {
    let server = Server::start(vec![say(200, "application/json", vec![b' '; 5000])]).await;
    let problem =
        ask(&server.url(), ModelOptions { max_response_bytes: 1000, ..options() }).await.unwrap_err();
    assert!(matches!(problem, ModelError::TooLarge { limit: 1000 }), "{problem}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn endless_response_is_rejected() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 2048];
        let _read = stream.read(&mut request).await;
        let mut written = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while written.is_ok() {
            written = stream.write_all(b"64\r\n[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\r\n").await;
        }
    });
    let problem = ask(&url, ModelOptions { max_response_bytes: 1000, ..options() }).await.unwrap_err();
    assert!(matches!(problem, ModelError::TooLarge { limit: 1000 }), "{problem}");
    server.await.unwrap();
}

#[tokio::test]
async fn closed_port_is_unreachable() {
    let problem = ask(&nobody().await, options()).await.unwrap_err();
    assert!(matches!(problem, ModelError::Unreachable { .. }) && problem.is_infrastructure(), "{problem}");
}

#[tokio::test]
async fn silence_ends_attempt_and_deadline_ends_call() {
    let server = Server::start(vec![Answer::Silence]).await;
    let quick = ModelOptions { attempt_timeout: Duration::from_millis(30), ..options() };
    let problem = ask(&server.url(), quick).await.unwrap_err();
    assert!(matches!(problem, ModelError::Timeout { .. }), "{problem}");
    assert_eq!(server.asked().len(), 3);
    let client = ModelClient::vllm(&server.url(), options()).unwrap();
    let problem = client.complete(request(), Deadline::after(Duration::from_millis(30))).await.unwrap_err();
    assert!(matches!(problem, ModelError::Timeout { .. }), "{problem}");
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn retry_after_beyond_deadline_is_not_waited_for() {
    let later = Answer::Say { status: 429, headers: vec![("retry-after", "3600".into())], body: vec![] };
    let server = Server::start(vec![later]).await;
    let problem = ask(&server.url(), options()).await.unwrap_err();
    let hour = Duration::from_secs(3600);
    assert!(
        matches!(problem, ModelError::RateLimited { retry_after: Some(asked) } if asked == hour),
        "{problem}"
    );
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn sessions_bound_concurrent_requests() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let router = {
        let (now, most, gate) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&gate));
        axum::Router::new().fallback(move || async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
            now.fetch_sub(1, Ordering::SeqCst);
            json!({"choices": [{"message": {"content": "x"}}]}).to_string()
        })
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let client = ModelClient::vllm(&url, ModelOptions { sessions: 2, ..options() }).unwrap();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(
                async move { client.complete(request(), Deadline::after(Duration::from_secs(20))).await },
            )
        })
        .collect();
    while now.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(6);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    server.abort();
}
