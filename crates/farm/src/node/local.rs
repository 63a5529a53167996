//! The node in this process: asks the pool and puts its answers into HTTP form.

use axum::{
    body::Body,
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use browser::{ObserveRequest, Screenshot};
use proto::InstanceId;
use serde_json::json;

use super::{Call, GetRequest, Node, NodeInfo};
use crate::{
    error::FarmError,
    observe::{Encoding, ObserveCall},
    pool::{Drained, Granted, Operation, Outcome, Pool, Seen},
};

#[derive(Clone)]
pub(crate) struct LocalNode(pub(crate) Pool);

impl Node for LocalNode {
    async fn get(&self, request: &GetRequest) -> Result<Granted, FarmError> {
        let lifetime = self.0.lifetime(request.lifetime_mins)?;
        self.0.get(lifetime, request.key.as_deref(), request.wait).await
    }

    async fn reset(&self, id: &InstanceId) -> Result<(), FarmError> {
        self.0.reset(id)
    }

    async fn call(&self, id: &InstanceId, call: Call) -> Result<Response, FarmError> {
        match self.0.perform(id, operation(&call)).await? {
            Outcome::Answer(value) => Ok(axum::Json(value).into_response()),
            Outcome::Size(width, height) => {
                Ok(axum::Json(json!({"width": width, "height": height})).into_response())
            }
            Outcome::Alive => {
                Ok(axum::Json(json!({"status": "success", "message": "Probe successful"})).into_response())
            }
            Outcome::Seen(seen) => show(call, *seen),
        }
    }

    async fn info(&self) -> Result<NodeInfo, FarmError> {
        Ok(self.info_now())
    }

    async fn drain(&self, on: bool) -> Result<Drained, FarmError> {
        if on { Ok(self.0.drain()) } else { self.0.reopen() }
    }
}

impl LocalNode {
    pub(crate) fn info_now(&self) -> NodeInfo {
        let (counts, in_use) = self.0.snapshot();
        let draining = self.0.draining();
        NodeInfo {
            // Masters that know no draining must not come here either.
            available: if draining { 0 } else { counts.available },
            capacity: counts.capacity,
            in_use: in_use.iter().map(ToString::to_string).collect(),
            starting: counts.starting,
            dead: counts.dead,
            waiting: self.0.waiting(),
            held_back: self.0.held_back(),
            dead_because: self.0.dead_because(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            id: Some(self.0.identity().id.clone()),
            incarnation: Some(self.0.identity().incarnation.clone()),
            draining,
        }
    }
}

fn operation(call: &Call) -> Operation {
    match call {
        Call::Screenshot { mode, format } => {
            Operation::Observe(ObserveRequest { format: *format, ..ObserveRequest::screenshot(*mode) })
        }
        Call::Execute(command) => Operation::Execute(command.clone()),
        Call::Metadata => Operation::Size,
        Call::Probe => Operation::Probe,
        Call::Observe { call, .. } => call.operation(),
    }
}

fn show(call: Call, seen: Seen) -> Result<Response, FarmError> {
    match call {
        Call::Observe { call, encoding } => observed(&call, seen, encoding),
        _ => match seen.observation.screenshot {
            Some(screenshot) => Ok(image(screenshot)),
            None => Err(FarmError::Internal("no screenshot was taken".into())),
        },
    }
}

fn image(screenshot: Screenshot) -> Response {
    let mut response = Response::new(Body::from(screenshot.bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(screenshot.format.mime()));
    response
}

fn observed(call: &ObserveCall, seen: Seen, encoding: Encoding) -> Result<Response, FarmError> {
    let kind = match encoding {
        Encoding::Json => "application/json",
        Encoding::Msgpack => Encoding::MSGPACK,
    };
    let mut response = Response::new(Body::from(call.answer(seen, encoding)?));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
