//! Parses queries and bodies. Errors name what is wrong and what is accepted.

use std::{collections::HashMap, str::FromStr, time::Duration};

use axum::{
    Extension,
    body::Bytes,
    extract::{
        DefaultBodyLimit, FromRequest, FromRequestParts, Path, RawQuery, Request, rejection::BytesRejection,
    },
    http::{StatusCode, request::Parts},
    routing::MethodRouter,
};
use proto::{Command, ImageFormat, InstanceId, InteractionMode, SessionOptions};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::response::ErrorResponse;
use crate::{
    access::LEASE_FIELDS,
    computer::ComputerCall,
    error::ApiError,
    node::{Call, Fork, GetRequest},
    observe::{Encoding, ObserveCall},
    recording::RecordingPart,
};

/// Returns the call for a part of a recording.
pub(crate) fn recording_call(name: &str) -> Result<Call, ApiError> {
    let unknown = || ApiError::NotFound("/recording/…".to_owned());
    RecordingPart::from_name(name).map(Call::Recording).ok_or_else(unknown)
}

/// The maximum of `wait_secs`. A reverse proxy in front of a farm must wait at least as long.
pub const MAX_WAIT_SECS: f64 = 3600.0;
const MAX_KEY_BYTES: usize = 200;
/// A body has a few kilobytes; a client that needs longer only blocks the connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of a body in bytes, for the error message. A layer adds it to every request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit(pub(crate) usize);

/// The maximum size of a body with a storage state.
const MAX_STATE_BYTES: usize = 16 << 20;

/// The maximum size of an uploaded file.
const MAX_FILE_BYTES: usize = 64 << 20;

/// Lets the body of a route be a file.
pub(crate) fn accept_file<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    let route: MethodRouter<S> = route.layer(Extension(BodyLimit(MAX_FILE_BYTES)));
    route.layer(DefaultBodyLimit::max(MAX_FILE_BYTES))
}

/// The name of a file, from the path.
pub(crate) struct FileName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for FileName {
    type Rejection = ErrorResponse;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(error) => Err(ApiError::BadRequest(format!("the file name is invalid: {error}")).into()),
        }
    }
}

/// A body of any bytes.
pub(crate) struct FileBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for FileBody {
    type Rejection = ErrorResponse;
    async fn from_request(request: Request, state: &S) -> Result<Self, ErrorResponse> {
        Ok(Self(read_body(request, state).await?))
    }
}

/// Lets the body of a route hold a storage state.
pub(crate) fn accept_storage_state<S: Clone + Send + Sync + 'static>(
    route: MethodRouter<S>,
) -> MethodRouter<S> {
    let route: MethodRouter<S> = route.layer(Extension(BodyLimit(MAX_STATE_BYTES)));
    route.layer(DefaultBodyLimit::max(MAX_STATE_BYTES))
}

/// The query parameters of a request.
pub(crate) struct Query(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ErrorResponse;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let Ok(RawQuery(query)) = RawQuery::from_request_parts(parts, state).await;
        let pairs = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
        Ok(Self(pairs.into_owned().collect()))
    }
}

impl Query {
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        let missing = || ApiError::BadRequest(format!("the query parameter {name} is missing"));
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    fn optional<T: FromStr>(&self, name: &str, accepted: &str) -> Result<Option<T>, ApiError> {
        let Some(text) = self.0.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let invalid = || ApiError::BadRequest(format!("{name} is {text:?}; it must be {accepted}"));
        text.trim().parse().map(Some).map_err(|_| invalid())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn instance(&self) -> Result<InstanceId, ApiError> {
        Ok(self.required("instance_id")?.parse()?)
    }

    /// Parses the parameters and the body of `/get`.
    pub(crate) fn get_request(&self, body: &OptionalBody) -> Result<GetRequest, ApiError> {
        let accepted = format!("a number of seconds from 0 to {MAX_WAIT_SECS}");
        let wait: Option<f64> = self.optional("wait_secs", &accepted)?;
        if let Some(wait) = wait.filter(|wait| !(0.0..=MAX_WAIT_SECS).contains(wait)) {
            return Err(ApiError::BadRequest(format!("wait_secs is {wait}; it must be {accepted}")));
        }
        let key = self.0.get("idempotency_key").filter(|key| !key.is_empty()).cloned();
        if key.as_ref().is_some_and(|key| key.len() > MAX_KEY_BYTES) {
            return Err(ApiError::BadRequest(format!(
                "idempotency_key is longer than {MAX_KEY_BYTES} bytes"
            )));
        }
        Ok(GetRequest {
            lifetime_mins: self.optional("lifetime_mins", "a whole number of minutes")?.unwrap_or(60),
            wait: wait.map(Duration::from_secs_f64),
            key,
            options: SessionOptions::from_json(&body.0)
                .map_err(|error| ApiError::BadRequest(error.to_string()))?,
            fork: None,
        })
    }

    /// Parses a request for a fork of the lease `from`. Its options are those of the original.
    pub(crate) fn fork_request(&self, from: InstanceId) -> Result<GetRequest, ApiError> {
        let steps: Option<usize> = self.optional("steps", "a whole number of steps")?;
        let request = self.get_request(&OptionalBody::default())?;
        Ok(GetRequest { fork: Some(Fork { from, steps }), ..request })
    }

    pub(crate) fn screenshot(&self) -> Result<Call, ApiError> {
        let mode = self.optional("interaction_mode", "set_of_marks or coordinates")?.unwrap_or_default();
        let format: ImageFormat = self.optional("format", "png, jpeg or webp")?.unwrap_or_default();
        let mode: InteractionMode = mode;
        Ok(Call::Screenshot { mode, format })
    }
}

/// A body that is a JSON object.
pub(crate) struct Body(pub(crate) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ErrorResponse;
    async fn from_request(request: Request, state: &S) -> Result<Self, ErrorResponse> {
        Ok(Self(parse_object(&read_body(request, state).await?)?))
    }
}

/// A body that is a JSON object, or empty.
#[derive(Default)]
pub(crate) struct OptionalBody(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for OptionalBody {
    type Rejection = ErrorResponse;
    async fn from_request(request: Request, state: &S) -> Result<Self, ErrorResponse> {
        let bytes = read_body(request, state).await?;
        if bytes.trim_ascii().is_empty() { Ok(Self(Map::new())) } else { Ok(Self(parse_object(&bytes)?)) }
    }
}

async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let limit = request.extensions().get::<BodyLimit>().copied();
    let read = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await;
    let too_slow = |_| ApiError::BadRequest(format!("the body was not received within {BODY_TIMEOUT:?}"));
    read.map_err(too_slow)?.map_err(|error| read_error(&error, limit))
}

fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(ApiError::BadRequest("the body must be a JSON object".into())),
        Err(error) => Err(ApiError::BadRequest(format!("the body is not valid JSON: {error}"))),
    }
}

fn read_error(error: &BytesRejection, limit: Option<BodyLimit>) -> ApiError {
    match limit {
        Some(BodyLimit(bytes)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::TooLarge(bytes)
        }
        _ => ApiError::BadRequest(format!("cannot read the body: {error}")),
    }
}

impl Body {
    pub(crate) fn text(&self, name: &str) -> Result<&str, ApiError> {
        match self.0.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            Some(_) => Err(ApiError::BadRequest(format!("{name} must be a non-empty string"))),
            None => Err(ApiError::BadRequest(format!("{name} is missing from the body"))),
        }
    }

    pub(crate) fn node(&self) -> Result<&str, ApiError> {
        self.text("node")
    }

    pub(crate) fn instance(&self) -> Result<InstanceId, ApiError> {
        Ok(self.text("instance_id")?.parse()?)
    }

    pub(crate) fn command(&self) -> Result<Call, ApiError> {
        Ok(Call::Execute(Command::from_json(&self.0, &LEASE_FIELDS)?))
    }

    /// Parses the body of `PUT /storage_state`.
    pub(crate) fn storage_state(self) -> Result<Call, ApiError> {
        let options = Map::from_iter([("storage_state".to_owned(), Value::Object(self.0))]);
        let options =
            SessionOptions::from_json(&options).map_err(|error| ApiError::BadRequest(error.to_string()))?;
        Ok(Call::SetStorageState(Box::new(options.storage_state.unwrap_or_default())))
    }

    pub(crate) fn computer(&self) -> Result<Call, ApiError> {
        Ok(Call::Computer(Box::new(ComputerCall::parse(&self.0)?)))
    }

    pub(crate) fn observe(&self, step: bool, accept: Option<&str>) -> Result<Call, ApiError> {
        let call = ObserveCall::parse(&self.0, step)?;
        Ok(Call::Observe { call, encoding: Encoding::from_accept(accept) })
    }
}
