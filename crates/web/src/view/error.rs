//! Errors of the viewer, and the table that maps each of them to an HTTP status and an error code.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use store::Split;
use store::pt::PtError;

/// Why a request of the viewer failed.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("{0}")]
    BadRequest(String),
    #[error("there is no such API route")]
    NoSuchAddress,
    #[error("there is no {split} iteration {iteration} in this save path")]
    NoIteration { split: Split, iteration: u64 },
    #[error("{split} iteration {iteration} has no trajectory {key}")]
    NoTrajectory { split: Split, iteration: u64, key: String },
    #[error("the trajectory has {steps} steps; there is no step {step}")]
    NoStep { step: usize, steps: usize },
    #[error("the screenshot file is missing: {0}")]
    NoScreenshot(String),
    #[error("the screenshot is outside the save path; to show it, pass its folder with --images: {0}")]
    ScreenshotOutside(String),
    #[error("the recording cannot be shown: {0}")]
    NoRecording(String),
    #[error("the recorded screenshot is not an image: {0}")]
    NotAnImage(String),
    #[error("cannot list {path}: {source}", path = path.display())]
    List { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    File(#[from] PtError),
    #[error("nothing to plot: there are no trajectories under {0}")]
    NothingToPlot(String),
    #[error(transparent)]
    Plot(#[from] crate::plot::PlotError),
    #[error("internal error: {0}")]
    Internal(String),
}

impl ViewError {
    const fn table(&self) -> (StatusCode, &'static str) {
        match self {
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "bad_request"),
            Self::NoSuchAddress => (StatusCode::NOT_FOUND, "no_such_address"),
            Self::NoIteration { .. } => (StatusCode::NOT_FOUND, "no_iteration"),
            Self::NoTrajectory { .. } => (StatusCode::NOT_FOUND, "no_trajectory"),
            Self::NoStep { .. } => (StatusCode::NOT_FOUND, "no_step"),
            Self::NoScreenshot(_) => (StatusCode::NOT_FOUND, "no_screenshot"),
            Self::NoRecording(_) => (StatusCode::NOT_FOUND, "no_recording"),
            Self::ScreenshotOutside(_) => (StatusCode::FORBIDDEN, "screenshot_outside"),
            Self::NotAnImage(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_an_image"),
            Self::NothingToPlot(_) => (StatusCode::NOT_FOUND, "nothing_to_plot"),
            Self::File(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unreadable_file"),
            Self::List { .. } | Self::Plot(_) | Self::Internal(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal")
            }
        }
    }

    /// Returns the machine-readable error code.
    pub const fn code(&self) -> &'static str {
        self.table().1
    }
}

impl IntoResponse for ViewError {
    fn into_response(self) -> Response {
        let (status, code) = self.table();
        (status, axum::Json(json!({"detail": self.to_string(), "code": code}))).into_response()
    }
}
