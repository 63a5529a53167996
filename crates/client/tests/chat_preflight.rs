//! The check of a policy server before a run: whether it is a chat server, and which of its models is used.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod support;

use std::time::Duration;

use client::chat::{ModelClient, ModelError, ModelOptions};
use serde_json::json;
use support::{ScriptedResponse, Server, closed_port_url, json_response, respond};

const LIMIT: Duration = Duration::from_secs(20);

/// Returns the model that the client chooses, and the paths it requested.
async fn choose(
    wanted: Option<&str>,
    responses: Vec<ScriptedResponse>,
) -> (Result<String, ModelError>, Vec<String>) {
    let server = Server::start(responses).await;
    let client = ModelClient::vllm(&server.url(), ModelOptions::default()).unwrap();
    let chosen = client.choose_model(wanted, LIMIT).await;
    (chosen, server.requests().iter().map(|request| request.path.clone()).collect())
}

fn serving(names: &[&str]) -> ScriptedResponse {
    let models: Vec<_> = names.iter().map(|name| json!({"id": name})).collect();
    json_response(200, &json!({"object": "list", "data": models}))
}

fn complaint(status: u16) -> ScriptedResponse {
    json_response(status, &json!({"error": {"message": "no"}}))
}

#[tokio::test]
async fn listed_model_is_chosen_without_probing() {
    let (chosen, requests) = choose(Some("b"), vec![serving(&["a", "b"])]).await;
    assert_eq!(chosen.unwrap(), "b");
    assert_eq!(requests, ["/v1/models"]);
}

#[tokio::test]
async fn only_model_is_chosen_without_a_name() {
    assert_eq!(choose(None, vec![serving(&["org/only"])]).await.0.unwrap(), "org/only");
}

#[tokio::test]
async fn several_models_without_a_name_are_an_error() {
    let error = choose(None, vec![serving(&["a", "b"])]).await.0.unwrap_err();
    assert!(matches!(error, ModelError::NoneNamed { .. }) && error.to_string().contains("a, b"), "{error}");
    let error = choose(None, vec![respond(404, "text/plain", "no"), complaint(422)]).await.0.unwrap_err();
    assert!(matches!(error, ModelError::NoneNamed { .. }), "{error}");
}

#[tokio::test]
async fn unserved_model_error_lists_served_models() {
    let error = choose(Some("typo"), vec![serving(&["a", "b"]), complaint(404)]).await.0.unwrap_err();
    assert!(matches!(error, ModelError::NotServed { .. }), "{error}");
    assert!(error.to_string().contains("typo") && error.to_string().contains("a, b"), "{error}");
}

#[tokio::test]
async fn listed_version_is_the_origin_of_the_weights_or_the_name() {
    for (entry, expected) in [
        (json!({"id": "m", "root": "/checkpoints/40"}), Some("/checkpoints/40")),
        (json!({"id": "m"}), Some("m")),
        (json!({"id": "m", "root": ""}), Some("m")),
        (json!({"id": "other", "root": "/checkpoints/40"}), None),
    ] {
        let server = Server::start(vec![json_response(200, &json!({"data": [entry]}))]).await;
        let client = ModelClient::vllm(&server.url(), ModelOptions::default()).unwrap();
        let version = client.listed_version("m", Duration::from_secs(20)).await;
        assert_eq!(version.as_deref(), expected, "{entry}");
    }
}

/// Gateways do not list all their models, and some servers accept any name.
#[tokio::test]
async fn unlisted_model_that_answers_is_chosen() {
    let (chosen, requests) =
        choose(Some("hidden"), vec![serving(&["a"]), json_response(200, &json!({}))]).await;
    assert_eq!(chosen.unwrap(), "hidden");
    assert_eq!(requests, ["/v1/models", "/v1/chat/completions"]);
    let unlisted = vec![respond(404, "text/plain", "no"), complaint(400), json_response(200, &json!({}))];
    assert_eq!(choose(Some("m"), unlisted).await.0.unwrap(), "m");
}

#[tokio::test]
async fn non_chat_server_is_rejected() {
    let page = || respond(200, "text/html", "<html>hello</html>");
    for responses in [
        vec![page(), page()],
        vec![respond(404, "text/plain", "no"), respond(404, "text/plain", "no")],
        vec![json_response(200, &json!({"hello": 1})), complaint(404)],
    ] {
        let error = choose(Some("m"), responses).await.0.unwrap_err();
        assert!(matches!(error, ModelError::NoChatServer { .. }), "{error}");
    }
}

#[tokio::test]
async fn unready_or_unauthorized_server_is_rejected() {
    for status in [401, 403, 503] {
        let error = choose(Some("m"), vec![complaint(status)]).await.0.unwrap_err();
        assert!(matches!(error, ModelError::Refused { status: refused, .. } if refused == status), "{error}");
    }
    let client = ModelClient::vllm(&closed_port_url().await, ModelOptions::default()).unwrap();
    assert!(matches!(client.choose_model(None, LIMIT).await, Err(ModelError::Unreachable { .. })));
    assert!(!client.is_reachable(LIMIT).await);
}

#[tokio::test]
async fn any_http_response_counts_as_reachable() {
    let server = Server::start(vec![respond(404, "text/plain", "no")]).await;
    assert!(ModelClient::vllm(&server.url(), ModelOptions::default()).unwrap().is_reachable(LIMIT).await);
}
