//! What can go wrong when somebody looks, and the one table from that to a status, a code and a sentence.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use store::Split;
use store::pt::PtError;

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("{0}")]
    BadRequest(String),
    #[error("there is nothing at this address")]
    NoSuchAddress,
    #[error("there is no {split} iteration {iteration} here")]
    NoIteration { split: Split, iteration: u64 },
    #[error("{split} iteration {iteration} has no trajectory {key}")]
    NoTrajectory { split: Split, iteration: u64, key: String },
    #[error("the trajectory has {steps} steps; there is no step {step}")]
    NoStep { step: usize, steps: usize },
    #[error("the screenshot is not there: {0}")]
    NoScreenshot(String),
    #[error("the screenshot lies outside of the save path; name its folder with --images to show it: {0}")]
    ScreenshotOutside(String),
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
    #[error("the reading of files was cut short: {0}")]
    Cut(String),
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
            Self::ScreenshotOutside(_) => (StatusCode::FORBIDDEN, "screenshot_outside"),
            Self::NotAnImage(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_an_image"),
            Self::NothingToPlot(_) => (StatusCode::NOT_FOUND, "nothing_to_plot"),
            Self::File(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unreadable_file"),
            Self::List { .. } | Self::Plot(_) | Self::Cut(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal")
            }
        }
    }

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
