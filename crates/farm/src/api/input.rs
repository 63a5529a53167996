//! Reads queries and bodies, with errors that name what is wrong and what is accepted.

use std::{collections::HashMap, str::FromStr, time::Duration};

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawQuery, Request, rejection::BytesRejection},
    http::{StatusCode, request::Parts},
};
use proto::{Command, ImageFormat, InstanceId, InteractionMode};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::reply::Failed;
use crate::{
    error::FarmError,
    node::{Call, GetRequest},
    observe::{Encoding, ObserveCall},
};

/// The longest a caller may wait in line, in seconds. Whatever stands in front of a farm must wait as long.
pub const LONGEST_WAIT: f64 = 3600.0;
const LONGEST_KEY: usize = 200;
/// A body is a few kilobytes; whoever takes longer only holds the connection.
const SLOWEST_BODY: Duration = Duration::from_secs(30);

pub(crate) struct Query(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Failed;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failed> {
        let Ok(RawQuery(query)) = RawQuery::from_request_parts(parts, state).await;
        let pairs = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
        Ok(Self(pairs.into_owned().collect()))
    }
}

impl Query {
    pub(crate) fn need(&self, name: &str) -> Result<&str, FarmError> {
        let missing = || FarmError::BadRequest(format!("the query parameter {name} is missing"));
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    fn parsed<T: FromStr>(&self, name: &str, wanted: &str) -> Result<Option<T>, FarmError> {
        let Some(text) = self.0.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let bad = || FarmError::BadRequest(format!("{name} is {text:?}; it must be {wanted}"));
        text.trim().parse().map(Some).map_err(|_| bad())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn instance(&self) -> Result<InstanceId, FarmError> {
        Ok(self.need("instance_id")?.parse()?)
    }

    pub(crate) fn get_request(&self) -> Result<GetRequest, FarmError> {
        let wanted = format!("a number of seconds from 0 to {LONGEST_WAIT}");
        let wait: Option<f64> = self.parsed("wait_secs", &wanted)?;
        if let Some(wait) = wait.filter(|wait| !(0.0..=LONGEST_WAIT).contains(wait)) {
            return Err(FarmError::BadRequest(format!("wait_secs is {wait}; it must be {wanted}")));
        }
        let key = self.0.get("idempotency_key").filter(|key| !key.is_empty()).cloned();
        if key.as_ref().is_some_and(|key| key.len() > LONGEST_KEY) {
            return Err(FarmError::BadRequest(format!("idempotency_key is longer than {LONGEST_KEY} bytes")));
        }
        Ok(GetRequest {
            lifetime_mins: self.parsed("lifetime_mins", "a whole number of minutes")?.unwrap_or(60),
            wait: wait.map(Duration::from_secs_f64),
            key,
        })
    }

    pub(crate) fn screenshot(&self) -> Result<Call, FarmError> {
        let mode = self.parsed("interaction_mode", "set_of_marks or coordinates")?.unwrap_or_default();
        let format: ImageFormat = self.parsed("format", "png, jpeg or webp")?.unwrap_or_default();
        let mode: InteractionMode = mode;
        Ok(Call::Screenshot { mode, format })
    }
}

/// A JSON object, or an error that says why it is not one.
pub(crate) struct Body(pub(crate) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Failed;
    async fn from_request(request: Request, state: &S) -> Result<Self, Failed> {
        let read = tokio::time::timeout(SLOWEST_BODY, Bytes::from_request(request, state)).await;
        let slow = |_| FarmError::BadRequest(format!("the body did not come within {SLOWEST_BODY:?}"));
        let bytes = read.map_err(slow)?.map_err(|error| unreadable(&error))?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err(FarmError::BadRequest("the body must be a JSON object".into()).into()),
            Err(error) => Err(FarmError::BadRequest(format!("the body is not valid JSON: {error}")).into()),
        }
    }
}

fn unreadable(error: &BytesRejection) -> FarmError {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return FarmError::TooLarge(super::listen::BODY_LIMIT.load(std::sync::atomic::Ordering::Relaxed));
    }
    FarmError::BadRequest(format!("the body could not be read: {error}"))
}

impl Body {
    pub(crate) fn text(&self, name: &str) -> Result<&str, FarmError> {
        match self.0.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            Some(_) => Err(FarmError::BadRequest(format!("{name} must be a string that is not empty"))),
            None => Err(FarmError::BadRequest(format!("{name} is missing from the body"))),
        }
    }

    pub(crate) fn node(&self) -> Result<&str, FarmError> {
        self.text("node")
    }

    pub(crate) fn instance(&self) -> Result<InstanceId, FarmError> {
        Ok(self.text("instance_id")?.parse()?)
    }

    pub(crate) fn command(&self) -> Result<Call, FarmError> {
        Ok(Call::Execute(Command::from_json(&self.0, &["node", "instance_id"])?))
    }

    pub(crate) fn observe(&self, step: bool, accept: Option<&str>) -> Result<Call, FarmError> {
        let call = ObserveCall::read(&self.0, step)?;
        Ok(Call::Observe { call, encoding: Encoding::from_accept(accept) })
    }
}
