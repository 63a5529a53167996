//! The node in this process: calls the pool and turns its results into HTTP responses.

use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use browser::{ObserveRequest, Screenshot};
use proto::InstanceId;
use serde_json::json;

use super::{Call, GetRequest, Node, NodeInfo};
use crate::{
    access::LeaseAccess,
    error::ApiError,
    observe::{Encoding, ObserveCall},
    pool::{DrainStatus, ObserveResult, Operation, OperationResult, PendingLease, Pool},
    recording::RecordingPart,
};

#[derive(Clone)]
pub(crate) struct LocalNode(pub(crate) Pool);

impl Node for LocalNode {
    async fn get(&self, request: &GetRequest) -> Result<PendingLease, ApiError> {
        let lifetime = self.0.lifetime(request.lifetime_mins)?;
        let lease = self.0.lease_with(lifetime, request).await?;
        let access = self.access(lease.id()).await?;
        Ok(lease.with_access(access))
    }

    async fn access(&self, id: &InstanceId) -> Result<Option<LeaseAccess>, ApiError> {
        Ok(Some(LeaseAccess::new(id, &self.0.secrets(id)?)))
    }

    async fn reset(&self, id: &InstanceId) -> Result<(), ApiError> {
        self.0.release(id)
    }

    async fn call(&self, id: &InstanceId, call: Call) -> Result<Response, ApiError> {
        let operation = match operation(&call) {
            Ok(operation) => operation,
            Err(Report::Recording(part)) => {
                return Ok(recording_response(part, self.0.recording(id, part).await?));
            }
            Err(Report::Network) => return Ok(axum::Json(self.0.network_report(id)?).into_response()),
        };
        match self.0.perform(id, operation).await? {
            OperationResult::Answer(value) => Ok(axum::Json(value).into_response()),
            OperationResult::Size(width, height) => {
                Ok(axum::Json(json!({"width": width, "height": height})).into_response())
            }
            OperationResult::Alive | OperationResult::Configured(_) => {
                Ok(axum::Json(json!({"status": "success", "message": "Probe successful"})).into_response())
            }
            OperationResult::File(content) => Ok(file_response(content)),
            OperationResult::Observed(observed) => observation_response(call, *observed),
            OperationResult::Computer(turn) => Ok(axum::Json(turn.into_json()).into_response()),
        }
    }

    async fn info(&self) -> Result<NodeInfo, ApiError> {
        Ok(self.info_now())
    }

    async fn set_draining(&self, draining: bool) -> Result<DrainStatus, ApiError> {
        if draining { Ok(self.0.drain()) } else { self.0.undrain() }
    }
}

impl LocalNode {
    pub(crate) fn info_now(&self) -> NodeInfo {
        let (counts, in_use) = self.0.snapshot();
        let draining = self.0.is_draining();
        NodeInfo {
            // Masters of versions without draining must not send requests here either.
            available: if draining { 0 } else { counts.available },
            capacity: counts.capacity,
            in_use: in_use.iter().map(ToString::to_string).collect(),
            starting: counts.starting,
            dead: counts.dead,
            waiting: self.0.waiting(),
            held_back: self.0.held_back(),
            dead_because: self.0.dead_reason(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            id: Some(self.0.identity().id.clone()),
            incarnation: Some(self.0.identity().incarnation.clone()),
            draining,
        }
    }
}

/// What is read about a lease without an operation, while a command may run.
enum Report {
    Recording(RecordingPart),
    Network,
}

/// Returns the operation that a call stands for, or the report that it reads.
fn operation(call: &Call) -> Result<Operation, Report> {
    Ok(match call {
        Call::Screenshot { mode, format } => {
            Operation::Observe(ObserveRequest { format: *format, ..ObserveRequest::screenshot(*mode) })
        }
        Call::Execute(command) => Operation::Execute(command.clone()),
        Call::Metadata => Operation::Size,
        Call::Probe => Operation::Probe,
        Call::StorageState => Operation::StorageState,
        Call::ListFiles => Operation::ListFiles,
        Call::ReadFile(name) => Operation::ReadFile(name.clone()),
        Call::WriteFile { name, content } => {
            Operation::WriteFile { name: name.clone(), content: content.clone() }
        }
        Call::DeleteFile(name) => Operation::DeleteFile(name.clone()),
        Call::Recording(part) => return Err(Report::Recording(*part)),
        Call::Network => return Err(Report::Network),
        Call::SetStorageState(state) => Operation::SetStorageState(state.clone()),
        Call::Observe { call, .. } => call.operation(),
        Call::Computer(call) => Operation::Computer(call.clone()),
    })
}

fn observation_response(call: Call, observed: ObserveResult) -> Result<Response, ApiError> {
    match call {
        Call::Observe { call, encoding } => encoded_response(&call, observed, encoding),
        _ => match observed.observation.screenshot {
            Some(screenshot) => Ok(image_response(screenshot)),
            None => Err(ApiError::Internal("no screenshot was taken".into())),
        },
    }
}

fn recording_response(part: RecordingPart, content: bytes::Bytes) -> Response {
    let mut response = file_response(content);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(part.content_type()));
    response
}

/// Sends a file as what it is for us, bytes: a browser must not show it as a page of the farm.
fn file_response(content: bytes::Bytes) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn image_response(screenshot: Screenshot) -> Response {
    let mut response = Response::new(Body::from(screenshot.bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(screenshot.format.mime()));
    response
}

fn encoded_response(
    call: &ObserveCall,
    observed: ObserveResult,
    encoding: Encoding,
) -> Result<Response, ApiError> {
    let content_type = match encoding {
        Encoding::Json => "application/json",
        Encoding::Msgpack => Encoding::MSGPACK,
    };
    let mut response = Response::new(Body::from(call.encode(observed, encoding)?));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}
