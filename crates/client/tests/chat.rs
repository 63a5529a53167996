//! The chat client against real HTTP servers: the requests it sends, and how it handles each kind of failure.

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
use support::{ScriptedResponse, Server, closed_port_url, json_response, respond};

fn options() -> ModelOptions {
    let retry = RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    ModelOptions { retry, ..ModelOptions::default() }
}

fn completion() -> ScriptedResponse {
    json_response(
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
async fn version_of_the_policy_is_read_from_the_header() {
    for (header, expected) in [("step-40", Some("step-40")), ("", None), (&*"x".repeat(501), None)] {
        let ScriptedResponse::Respond { status, mut headers, body } = completion() else { unreachable!() };
        headers.push(("x-policy-version", header.to_owned()));
        let server = Server::start(vec![ScriptedResponse::Respond { status, headers, body }]).await;
        let got = ask(&server.url(), options()).await.unwrap();
        assert_eq!(got.policy_version.as_deref(), expected);
    }
}

#[tokio::test]
async fn policy_request_has_every_field() {
    let server = Server::start(vec![completion()]).await;
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
    let sent = &server.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(sent.header("content-type"), "application/json");
    assert_eq!(sent.header("authorization"), "");
    assert_eq!(
        sent.json(),
        json!({
            "model": "org/model", "temperature": 1.0, "top_p": 0.99, "top_k": 2, "min_p": 0.0, "max_tokens": 3072,
            "logprobs": true, "return_token_ids": true,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        })
    );
}

#[tokio::test]
async fn openai_request_has_key_and_standard_fields_only() {
    let server = Server::start(vec![completion()]).await;
    let base = format!("{}/v1beta/openai/", server.url());
    let client = ModelClient::openai(&base, Some("sk-1"), options()).unwrap();
    let mut request = request();
    request.extra.insert("max_completion_tokens".into(), json!(9));
    client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    let sent = &server.requests()[0];
    assert_eq!(sent.path, "/v1beta/openai/chat/completions");
    assert_eq!(sent.header("authorization"), "Bearer sk-1");
    let keys: Vec<String> = sent.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["model", "max_completion_tokens", "messages"]);
    assert!(!format!("{client:?}").contains("sk-1"));
}

fn request_with_image(folder: &std::path::Path) -> ChatRequest {
    let path = folder.join("a b.png");
    std::fs::write(&path, b"\x89PNG\r\n\x1a\nrest").unwrap();
    let message = Message { role: Role::User, content: vec![Part::Image(path)] };
    ChatRequest { messages: vec![message], ..request() }
}

fn image_url(body: &Value) -> String {
    body["messages"][0]["content"][0]["image_url"]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn images_are_sent_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let request = request_with_image(folder.path());
    let server = Server::start(vec![completion()]).await;
    for images in [Images::File, Images::Data] {
        let client = ModelClient::vllm(&server.url(), ModelOptions { images, ..options() }).unwrap();
        client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    }
    let requests = server.requests();
    let file = image_url(&requests[0].json());
    assert!(file.starts_with("file:///") && file.ends_with("/a%20b.png"), "{file}");
    assert_eq!(image_url(&requests[1].json()), "data:image/png;base64,iVBORw0KGgpyZXN0");
}

#[tokio::test]
async fn images_are_inlined_after_file_url_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let request = request_with_image(folder.path());
    // What vLLM answers without `--allowed-local-media-path`, without access to the folder, and outside of it.
    for (status, reason) in [
        (500, "Cannot load local files without `--allowed-local-media-path`."),
        (500, "[Errno 2] No such file or directory: '/data/a.png'"),
        (400, "The file path /data/a.png must be a subpath of `--allowed-local-media-path` /other."),
    ] {
        let refusal = json!({"error": {"message": reason, "type": "InternalServerError", "code": status}});
        let server = Server::start(vec![json_response(status, &refusal), completion()]).await;
        let client =
            ModelClient::vllm(&server.url(), ModelOptions { images: Images::Auto, ..options() }).unwrap();
        for _ in 0..2 {
            client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap();
        }
        let ways: Vec<bool> =
            server.requests().iter().map(|request| image_url(&request.json()).starts_with("data:")).collect();
        assert_eq!(ways, [false, true, true], "{reason}");
    }
}

#[tokio::test]
async fn refusal_unrelated_to_images_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let request = request_with_image(folder.path());
    let server = Server::start(vec![json_response(400, &json!({"error": "no such tool"}))]).await;
    let client = ModelClient::vllm(&server.url(), options()).unwrap();
    let error = client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Refused { status: 400, body } if body.contains("no such tool")),
        "{error}"
    );
    assert!(!error.is_infrastructure());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn too_large_prompt_is_recognised() {
    for reason in [
        "Input length (5160) exceeds model's maximum context length (4096).",
        "At most 2 image(s) may be provided in one prompt.",
        "This model's maximum context length is 128000 tokens.",
    ] {
        let refusal = json!({"error": {"message": reason, "type": "BadRequestError", "code": 400}});
        let server = Server::start(vec![json_response(400, &refusal)]).await;
        let error = ask(&server.url(), options()).await.unwrap_err();
        assert!(matches!(&error, ModelError::PromptTooLarge { body } if body.contains(reason)), "{error}");
        assert!(!error.is_infrastructure());
        assert_eq!(server.requests().len(), 1, "it is not sent again");
    }
}

#[tokio::test]
async fn api_key_is_sent_as_bearer_token() {
    let server = Server::start(vec![completion()]).await;
    let client = ModelClient::vllm(&server.url(), options()).unwrap().with_api_key("secret-4711").unwrap();
    client.complete(request(), Deadline::after(Duration::from_secs(20))).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), "Bearer secret-4711");
    assert!(!format!("{client:?}").contains("4711"));
}

#[tokio::test]
async fn missing_image_is_named_in_the_error() {
    let missing = Message { role: Role::User, content: vec![Part::Image("/none/here.png".into())] };
    let request = ChatRequest { messages: vec![missing], ..request() };
    let client =
        ModelClient::vllm("http://127.0.0.1:1", ModelOptions { images: Images::Data, ..options() }).unwrap();
    let error = client.complete(request.clone(), Deadline::after(Duration::from_secs(20))).await.unwrap_err();
    assert!(error.to_string().contains("/none/here.png"), "{error}");
}

#[tokio::test]
async fn temporary_failure_is_retried() {
    for failure in [
        respond(500, "text/plain", "oops"),
        respond(503, "text/html", "<html>busy</html>"),
        respond(408, "text/plain", ""),
        ScriptedResponse::Disconnect,
        ScriptedResponse::Respond { status: 429, headers: vec![("retry-after", "0".into())], body: vec![] },
    ] {
        let server = Server::start(vec![failure.clone(), completion()]).await;
        let got = ask(&server.url(), options()).await;
        assert_eq!(got.unwrap().text, "hello", "{failure:?}");
        assert_eq!(server.requests().len(), 2, "{failure:?}");
    }
}

#[tokio::test]
async fn lasting_failure_is_returned_after_retries() {
    let server = Server::start(vec![respond(502, "text/html", "<h1>Bad   Gateway</h1>")]).await;
    let error = ask(&server.url(), options()).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Refused { status: 502, body } if body == "<h1>Bad Gateway</h1>"),
        "{error}"
    );
    assert!(error.is_infrastructure());
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn permanent_failure_is_not_retried() {
    type IsRight = fn(&ModelError) -> bool;
    let cases: [(ScriptedResponse, IsRight); 3] = [
        (respond(404, "application/json", "{}"), |p| matches!(p, ModelError::Refused { status: 404, .. })),
        (respond(302, "text/plain", ""), |p| matches!(p, ModelError::Redirected { status: 302, .. })),
        (respond(413, "text/plain", "too long"), |p| matches!(p, ModelError::Refused { status: 413, .. })),
    ];
    for (failure, is_right) in cases {
        let server = Server::start(vec![failure.clone()]).await;
        let error = ask(&server.url(), options()).await.unwrap_err();
        assert!(is_right(&error), "{failure:?}: {error:?}");
        assert_eq!(server.requests().len(), 1, "{failure:?}");
    }
}

#[tokio::test]
async fn json_with_wrong_content_type_is_accepted() {
    let body = json!({"choices": [{"message": {"content": "hello"}}]}).to_string();
    let server = Server::start(vec![respond(200, "text/plain", body)]).await;
    assert_eq!(ask(&server.url(), options()).await.unwrap().text, "hello");
}

#[tokio::test]
async fn oversized_response_is_rejected() {
    let server = Server::start(vec![respond(200, "application/json", vec![b' '; 5000])]).await;
    let error = ask(&server.url(), ModelOptions { max_response_bytes: 1000, ..options() }).await.unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { limit: 1000 }), "{error}");
    assert_eq!(server.requests().len(), 1);
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
    let error = ask(&url, ModelOptions { max_response_bytes: 1000, ..options() }).await.unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { limit: 1000 }), "{error}");
    server.await.unwrap();
}

#[tokio::test]
async fn closed_port_is_unreachable() {
    let error = ask(&closed_port_url().await, options()).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }) && error.is_infrastructure(), "{error}");
}

#[tokio::test]
async fn silence_ends_attempt_and_deadline_ends_call() {
    let server = Server::start(vec![ScriptedResponse::Silence]).await;
    let quick = ModelOptions { attempt_timeout: Duration::from_millis(30), ..options() };
    let error = ask(&server.url(), quick).await.unwrap_err();
    assert!(matches!(error, ModelError::Timeout { .. }), "{error}");
    assert_eq!(server.requests().len(), 3);
    let client = ModelClient::vllm(&server.url(), options()).unwrap();
    let error = client.complete(request(), Deadline::after(Duration::from_millis(30))).await.unwrap_err();
    assert!(matches!(error, ModelError::Timeout { .. }), "{error}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn retry_after_beyond_deadline_is_not_waited_for() {
    let later = ScriptedResponse::Respond {
        status: 429,
        headers: vec![("retry-after", "3600".into())],
        body: vec![],
    };
    let server = Server::start(vec![later]).await;
    let error = ask(&server.url(), options()).await.unwrap_err();
    let hour = Duration::from_hours(1);
    assert!(
        matches!(error, ModelError::RateLimited { retry_after: Some(delay) } if delay == hour),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn sessions_bound_concurrent_requests() {
    let (concurrent, max_concurrent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let router = {
        let (concurrent, max_concurrent, gate) =
            (Arc::clone(&concurrent), Arc::clone(&max_concurrent), Arc::clone(&gate));
        axum::Router::new().fallback(move || async move {
            max_concurrent.fetch_max(concurrent.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.unwrap().forget();
            concurrent.fetch_sub(1, Ordering::SeqCst);
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
    while concurrent.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(6);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(max_concurrent.load(Ordering::SeqCst), 2);
    server.abort();
}
