//! The viewer's HTTP API. All routes only read. URLs contain a split, numbers and a trajectory key, never a file path.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use store::Split;

use super::detail::Detail;
use super::recording::Recording;
use super::{Table, View, ViewError};
use crate::page;
use crate::plot::{self, ChartOptions, Ema};

/// Returns all routes of the viewer: the page and, under `/api`, its data.
pub fn router(view: View) -> Router {
    page::router(page::Page::Viewer).nest("/api", api(view))
}

/// Returns the routes under `/api`.
pub fn api(view: View) -> Router {
    Router::new()
        .route("/iterations", get(iterations))
        .route("/iterations/{split}/{iteration}", get(overview))
        .route("/iterations/{split}/{iteration}/trajectories", get(table))
        .route("/iterations/{split}/{iteration}/trajectories/{key}", get(trajectory))
        .route("/iterations/{split}/{iteration}/trajectories/{key}/siblings", get(siblings))
        .route("/iterations/{split}/{iteration}/trajectories/{key}/steps/{step}/screenshot", get(screenshot))
        .route("/iterations/{split}/{iteration}/trajectories/{key}/recording", get(recording))
        .route(
            "/iterations/{split}/{iteration}/trajectories/{key}/recording/frames/{step}",
            get(recording_frame),
        )
        .route(
            "/iterations/{split}/{iteration}/trajectories/{key}/recording/files/{name}",
            get(recording_file),
        )
        .route("/curves", get(curves))
        .route("/plots.svg", get(plots_svg))
        .route("/plots.png", get(plots_png))
        .fallback(unknown_route)
        .with_state(view)
}

async fn unknown_route() -> ViewError {
    ViewError::NoSuchAddress
}

/// Runs a function that reads files on a thread where blocking is allowed.
async fn read<T: Send + 'static>(
    view: View,
    function: impl FnOnce(&View) -> Result<T, ViewError> + Send + 'static,
) -> Result<T, ViewError> {
    let joined = tokio::task::spawn_blocking(move || function(&view)).await;
    joined.map_err(|error| ViewError::Internal(error.to_string()))?
}

/// The parameters of a route's path. Kept as text so that an invalid one gets our own error message.
#[derive(Deserialize)]
struct PathParams {
    split: String,
    iteration: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    step: String,
    #[serde(default)]
    name: String,
}

impl PathParams {
    fn iteration(&self) -> Result<(Split, u64), ViewError> {
        let split = self.split.parse().map_err(ViewError::BadRequest)?;
        Ok((split, number(&self.iteration, "iteration")?))
    }

    fn step(&self) -> Result<usize, ViewError> {
        number(&self.step, "step")
    }
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, ViewError> {
    text.parse().map_err(|_| ViewError::BadRequest(format!("{what} is {text:?}; it must be a number")))
}

async fn iterations(State(view): State<View>) -> Result<Response, ViewError> {
    let contents = read(view, View::contents).await?;
    Ok(axum::Json(contents).into_response())
}

async fn overview(State(view): State<View>, Path(params): Path<PathParams>) -> Result<Response, ViewError> {
    let (split, iteration) = params.iteration()?;
    let overview = read(view, move |view| view.overview(split, iteration)).await?;
    Ok(axum::Json(overview).into_response())
}

async fn table(
    State(view): State<View>,
    Path(params): Path<PathParams>,
    headers: HeaderMap,
) -> Result<Response, ViewError> {
    let (split, iteration) = params.iteration()?;
    read(view, move |view| {
        let opened = view.0.cache.iteration(split, iteration)?;
        let tag = etag(&opened.version());
        if matches_etag(&headers, &tag) {
            return Ok(not_modified(&tag));
        }
        Ok(tagged(&tag, "application/json", json(&Table::of(&opened))?))
    })
    .await
}

async fn trajectory(State(view): State<View>, Path(params): Path<PathParams>) -> Result<Response, ViewError> {
    let (split, iteration) = params.iteration()?;
    read(view, move |view| {
        let opened = view.0.cache.iteration(split, iteration)?;
        let found = view.0.cache.trajectory(&opened, &params.key)?;
        let entry = opened.find(&params.key)?;
        let bytes = json(&Detail::of(&opened, entry, &found, &view.0.screenshots))?;
        Ok(([(header::CONTENT_TYPE, "application/json")], bytes).into_response())
    })
    .await
}

async fn siblings(State(view): State<View>, Path(params): Path<PathParams>) -> Result<Response, ViewError> {
    let (split, iteration) = params.iteration()?;
    let siblings = read(view, move |view| view.siblings(split, iteration, &params.key)).await?;
    Ok(axum::Json(siblings).into_response())
}

async fn screenshot(
    State(view): State<View>,
    Path(params): Path<PathParams>,
    headers: HeaderMap,
) -> Result<Response, ViewError> {
    let (split, iteration) = params.iteration()?;
    let step = params.step()?;
    read(view, move |view| {
        let opened = view.0.cache.iteration(split, iteration)?;
        let found = view.0.cache.trajectory(&opened, &params.key)?;
        let steps = found.steps.len();
        let recorded = found.steps.get(step).ok_or(ViewError::NoStep { step, steps })?;
        let screenshot = view.0.screenshots.find(&recorded.observation.image_path)?;
        let tag = etag(&screenshot.version());
        if matches_etag(&headers, &tag) {
            return Ok(not_modified(&tag));
        }
        let (bytes, kind) = screenshot.read()?;
        Ok(tagged(&tag, kind, bytes))
    })
    .await
}

/// Reads from the recording of a trajectory.
async fn read_recording(
    view: View,
    params: PathParams,
    respond: impl FnOnce(&Recording, &PathParams) -> Result<Response, ViewError> + Send + 'static,
) -> Result<Response, ViewError> {
    let (split, iteration) = params.iteration()?;
    read(view, move |view| {
        let opened = view.0.cache.iteration(split, iteration)?;
        let found = view.0.cache.trajectory(&opened, &params.key)?;
        let none = || ViewError::NoRecording("the episode was not recorded".to_owned());
        let recording = Recording::find(&found, &view.0.screenshots).ok_or_else(none)?;
        respond(&recording, &params)
    })
    .await
}

async fn recording(State(view): State<View>, Path(params): Path<PathParams>) -> Result<Response, ViewError> {
    read_recording(view, params, |recording, _| Ok(axum::Json(recording.describe()?).into_response())).await
}

async fn recording_frame(
    State(view): State<View>,
    Path(params): Path<PathParams>,
) -> Result<Response, ViewError> {
    read_recording(view, params, |recording, params| {
        let frame = recording.frame(params.step()?)?;
        let caching = "private, max-age=3600";
        let headers = [(header::CONTENT_TYPE, "image/jpeg"), (header::CACHE_CONTROL, caching)];
        Ok((headers, frame).into_response())
    })
    .await
}

async fn recording_file(
    State(view): State<View>,
    Path(params): Path<PathParams>,
) -> Result<Response, ViewError> {
    read_recording(view, params, |recording, params| {
        let headers = [
            (header::CONTENT_TYPE, "application/octet-stream"),
            (header::CONTENT_DISPOSITION, "attachment"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        Ok((headers, recording.file(&params.name)?).into_response())
    })
    .await
}

/// The query of the plot routes.
#[derive(Deserialize)]
struct PlotQuery {
    ema: Option<f64>,
    x: Option<String>,
    #[serde(default)]
    ood: bool,
}

impl PlotQuery {
    fn options(&self) -> Result<ChartOptions, ViewError> {
        let ema = self.ema.map(Ema::new).transpose().map_err(ViewError::BadRequest)?;
        let x = self.x.as_deref().map(str::parse).transpose().map_err(ViewError::BadRequest)?;
        Ok(ChartOptions { ema, x: x.unwrap_or_default(), is_ood_only: self.ood })
    }
}

async fn curves(State(view): State<View>, Query(query): Query<PlotQuery>) -> Result<Response, ViewError> {
    let options = query.options()?;
    let charts = read(view, move |view| view.charts(options)).await?;
    Ok(axum::Json(charts).into_response())
}

async fn plots_svg(State(view): State<View>, Query(query): Query<PlotQuery>) -> Result<Response, ViewError> {
    let options = query.options()?;
    let image = read(view, move |view| Ok(plot::svg(&view.charts(options)?))).await?;
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], image).into_response())
}

async fn plots_png(State(view): State<View>, Query(query): Query<PlotQuery>) -> Result<Response, ViewError> {
    let options = query.options()?;
    let image = read(view, move |view| Ok(plot::png(&view.charts(options)?)?)).await?;
    Ok(([(header::CONTENT_TYPE, "image/png")], image).into_response())
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, ViewError> {
    serde_json::to_vec(value).map_err(|error| ViewError::Internal(error.to_string()))
}

fn etag(version: &str) -> String {
    format!("\"{version}\"")
}

fn matches_etag(headers: &HeaderMap, tag: &str) -> bool {
    headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes())
}

fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    set_cache_headers(&mut response, tag);
    response
}

/// Returns a response that the browser caches but revalidates each time: another save path may be served at this address
/// later.
fn tagged(tag: &str, kind: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = ([(header::CONTENT_TYPE, kind)], bytes).into_response();
    set_cache_headers(&mut response, tag);
    response
}

fn set_cache_headers(response: &mut Response, tag: &str) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
}
