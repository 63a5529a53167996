//! First contact with a policy server: what may be one, and which of its models is asked for.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod support;

use std::time::Duration;

use client::chat::{ModelClient, ModelError, ModelOptions};
use serde_json::json;
use support::{Answer, Server, json as answer, nobody, say};

const LIMIT: Duration = Duration::from_secs(20);

/// The choice of a client that wants this model, and what the server was asked.
async fn choose(wanted: Option<&str>, answers: Vec<Answer>) -> (Result<String, ModelError>, Vec<String>) {
    let server = Server::start(answers).await;
    let client = ModelClient::vllm(&server.url(), ModelOptions::default()).unwrap();
    let chosen = client.choose_model(wanted, LIMIT).await;
    (chosen, server.asked().iter().map(|asked| asked.path.clone()).collect())
}

fn serving(names: &[&str]) -> Answer {
    let models: Vec<_> = names.iter().map(|name| json!({"id": name})).collect();
    answer(200, &json!({"object": "list", "data": models}))
}

fn complaint(status: u16) -> Answer {
    answer(status, &json!({"error": {"message": "no"}}))
}

#[tokio::test]
async fn listed_model_is_chosen_without_probing() {
    let (chosen, asked) = choose(Some("b"), vec![serving(&["a", "b"])]).await;
    assert_eq!(chosen.unwrap(), "b");
    assert_eq!(asked, ["/v1/models"]);
}

#[tokio::test]
async fn only_model_is_chosen_without_a_name() {
    assert_eq!(choose(None, vec![serving(&["org/only"])]).await.0.unwrap(), "org/only");
}

#[tokio::test]
async fn several_models_without_a_name_are_an_error() {
    let error = choose(None, vec![serving(&["a", "b"])]).await.0.unwrap_err();
    assert!(matches!(error, ModelError::NoneNamed { .. }) && error.to_string().contains("a, b"), "{error}");
    let error = choose(None, vec![say(404, "text/plain", "no"), complaint(422)]).await.0.unwrap_err();
    assert!(matches!(error, ModelError::NoneNamed { .. }), "{error}");
}

#[tokio::test]
async fn unserved_model_error_lists_served_models() {
    let error = choose(Some("typo"), vec![serving(&["a", "b"]), complaint(404)]).await.0.unwrap_err();
    assert!(matches!(error, ModelError::NotServed { .. }), "{error}");
    assert!(error.to_string().contains("typo") && error.to_string().contains("a, b"), "{error}");
}

/// Gateways do not list all they have, and some servers take any name.
#[tokio::test]
async fn unlisted_model_that_answers_is_chosen() {
    let (chosen, asked) = choose(Some("hidden"), vec![serving(&["a"]), answer(200, &json!({}))]).await;
    assert_eq!(chosen.unwrap(), "hidden");
    assert_eq!(asked, ["/v1/models", "/v1/chat/completions"]);
    let unlisted = vec![say(404, "text/plain", "no"), complaint(400), answer(200, &json!({}))];
    assert_eq!(choose(Some("m"), unlisted).await.0.unwrap(), "m");
}

#[tokio::test]
async fn non_chat_server_is_rejected() {
    let page = || say(200, "text/html", "<html>hello</html>");
    for answers in [
        vec![page(), page()],
        vec![say(404, "text/plain", "no"), say(404, "text/plain", "no")],
        vec![answer(200, &json!({"hello": 1})), complaint(404)],
    ] {
        let error = choose(Some("m"), answers).await.0.unwrap_err();
        assert!(matches!(error, ModelError::NoChatServer { .. }), "{error}");
    }
}

#[tokio::test]
async fn unready_or_unauthorized_server_is_rejected() {
    for status in [401, 403, 503] {
        let error = choose(Some("m"), vec![complaint(status)]).await.0.unwrap_err();
        assert!(matches!(error, ModelError::Refused { status: told, .. } if told == status), "{error}");
    }
    let client = ModelClient::vllm(&nobody().await, ModelOptions::default()).unwrap();
    assert!(matches!(client.choose_model(None, LIMIT).await, Err(ModelError::Unreachable { .. })));
    assert!(!client.is_reachable(LIMIT).await);
}

#[tokio::test]
async fn any_response_means_server_is_there() {
    let server = Server::start(vec![say(404, "text/plain", "no")]).await;
    assert!(ModelClient::vllm(&server.url(), ModelOptions::default()).unwrap().is_reachable(LIMIT).await);
}
