//! A policy server that refuses requests like vLLM 0.32: the same status codes and bodies, as `make test-trainers` records
//! them from the real server. Replies come from a script.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::Request,
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

use crate::sim_model::{ModelReply, ModelRequest, SimModel, json_response};

/// The name under which the model is served.
pub const MODEL: &str = "tiny";
/// The tokens of a screenshot of 1280 by 768 in Qwen3-VL.
const IMAGE_TOKENS: usize = 960;

/// Options of `vllm serve`.
#[derive(Clone, Debug)]
pub struct VllmOptions {
    pub api_key: Option<&'static str>,
    pub allowed_local_media_path: Option<PathBuf>,
    pub max_images: usize,
    pub max_model_len: usize,
}

impl Default for VllmOptions {
    fn default() -> Self {
        Self { api_key: None, allowed_local_media_path: None, max_images: 999, max_model_len: 32_768 }
    }
}

/// Starts the server. The script decides on the requests that vLLM would accept.
pub async fn start(
    options: VllmOptions,
    script: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static,
) -> SimModel {
    let key = options.api_key.map(|key| format!("Bearer {key}"));
    let models = models(options.max_model_len);
    let reply = move |request: &ModelRequest| refusal(&options, request).unwrap_or_else(|| script(request));
    SimModel::start_wrapped(Arc::new(reply), |chat| {
        let routes = Router::new()
            .route("/v1/models", get(async move || json_response(200, &models)))
            .fallback_service(chat);
        routes.layer(middleware::from_fn(move |request: Request, next: Next| {
            let is_allowed = key.as_deref().is_none_or(|key| {
                request.headers().get("authorization").is_some_and(|given| given.as_bytes() == key.as_bytes())
            });
            check_key(is_allowed, request, next)
        }))
    })
    .await
}

async fn check_key(is_allowed: bool, request: Request, next: Next) -> Response {
    if is_allowed {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, axum::Json(json!({"error": "Unauthorized"}))).into_response()
}

fn models(max_model_len: usize) -> Value {
    json!({"object": "list", "data": [{
        "id": MODEL, "object": "model", "created": 1_794_832_087, "owned_by": "vllm", "root": "/models/tiny",
        "parent": null, "max_model_len": max_model_len, "permission": [],
    }]})
}

/// Returns the response to a request that vLLM refuses.
fn refusal(options: &VllmOptions, request: &ModelRequest) -> Option<ModelReply> {
    let error = |status: u16, kind: &str, param: Value, message: String| {
        let error = json!({"message": message, "type": kind, "param": param, "code": status});
        Some(ModelReply::Json(status, json!({"error": error})))
    };
    let bad_request = |param: Value, message: String| error(400, "BadRequestError", param, message);
    let (limit, reply_limit) = (options.max_model_len, request.body["max_tokens"].as_u64().unwrap_or(0));
    if reply_limit > limit as u64 {
        return bad_request(
            "max_tokens".into(),
            format!(
                "max_tokens={reply_limit} cannot be greater than max_model_len={limit}. Please request fewer output \
                 tokens. (parameter=max_tokens, value={reply_limit})"
            ),
        );
    }
    let max_images = options.max_images;
    if request.images.len() > max_images {
        return bad_request(
            "image".into(),
            format!("At most {max_images} image(s) may be provided in one prompt. (parameter=image)"),
        );
    }
    for path in request.images.iter().filter_map(|url| url.strip_prefix("file://")) {
        let internal = |message: String| error(500, "InternalServerError", Value::Null, message);
        match &options.allowed_local_media_path {
            None => return internal("Cannot load local files without `--allowed-local-media-path`.".into()),
            Some(allowed) if !PathBuf::from(path).starts_with(allowed) => {
                return bad_request(
                    Value::Null,
                    "The file path <path> must be a subpath of `--allowed-local-media-path <path>`.".into(),
                );
            }
            Some(_) if !PathBuf::from(path).exists() => {
                return internal("[Errno 2] No such file or directory: '<path>'".into());
            }
            Some(_) => {}
        }
    }
    let length = request.text.len() / 4 + request.images.len() * IMAGE_TOKENS;
    if length > limit {
        return bad_request(
            Value::Null,
            format!("Input length ({length}) exceeds model's maximum context length ({limit})."),
        );
    }
    None
}
