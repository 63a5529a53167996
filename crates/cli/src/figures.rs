//! The figures of a running collector, for Prometheus and for whoever asks: `/metrics`, `/status`, `/healthz` on the
//! monitor's port. Reads the board; nothing in the run ever waits for a reader.

use std::{net::Ipv4Addr, sync::Arc};

use axum::{Json, Router, extract::State, http::header, response::IntoResponse, routing::get};
use rollout::board::Board;
use serde_json::{Value, json};

/// Serves until dropped. `None` when the port is taken: a run does not fail for that.
pub(crate) struct Figures {
    task: tokio::task::JoinHandle<()>,
    pub(crate) port: u16,
}

impl Figures {
    pub(crate) async fn start(board: Arc<Board>, port: u16) -> Option<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener =
            listener.inspect_err(|error| tracing::info!("no figures on port {port}: {error}")).ok()?;
        let port = listener.local_addr().ok()?.port();
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/status", get(status))
            .route("/healthz", get(async || Json(json!({"status": "ok"}))))
            .with_state(board);
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                tracing::debug!(%error, "figures are no longer served");
            }
        });
        Some(Self { task, port })
    }
}

impl Drop for Figures {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn metrics(State(board): State<Arc<Board>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], render(&board))
}

async fn status(State(board): State<Arc<Board>>) -> Json<Value> {
    let totals = board.totals();
    let stages: serde_json::Map<String, Value> =
        board.stages().iter().map(|(stage, count)| (stage.as_str().to_owned(), (*count).into())).collect();
    Json(json!({
        "tasks": totals.tasks, "done": board.done(), "steps": totals.steps, "retried": totals.retried,
        "outcomes": totals.outcomes, "stages": stages, "elapsed_seconds": board.elapsed().as_secs_f64(),
        "stalled_seconds": board.stalled().as_secs_f64(),
    }))
}

/// Prometheus' text form. Labels are stages and outcomes only, never tasks or addresses.
fn render(board: &Board) -> String {
    let totals = board.totals();
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
        text.push_str(&format!("# HELP webgym_rollout_{name} {help}\n# TYPE webgym_rollout_{name} {kind}\n"));
        for (labels, value) in values {
            text.push_str(&format!("webgym_rollout_{name}{labels} {value}\n"));
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    add("tasks", "gauge", "Tasks of this run", plain(totals.tasks as f64));
    add("steps_total", "counter", "Steps taken", plain(totals.steps as f64));
    add(
        "retried_total",
        "counter",
        "Episodes started afresh after an infrastructure loss",
        plain(totals.retried as f64),
    );
    add("troubles_total", "counter", "Operations that failed", plain(totals.troubles as f64));
    let outcomes =
        totals.outcomes.iter().map(|(name, count)| (format!("{{outcome=\"{name}\"}}"), *count as f64));
    add("finished_total", "counter", "Trajectories by outcome", outcomes.collect());
    let stages = board
        .stages()
        .into_iter()
        .map(|(stage, count)| (format!("{{stage=\"{}\"}}", stage.as_str()), count as f64));
    add("episodes", "gauge", "Episodes by what they are doing", stages.collect());
    let timings = board.timings();
    let label = |stage: rollout::event::Stage| format!("{{stage=\"{}\"}}", stage.as_str());
    let sums = timings.iter().map(|(stage, timing)| (label(*stage), timing.total.as_secs_f64()));
    add("stage_seconds_sum", "counter", "Time spent in each stage", sums.collect());
    let counts = timings.iter().map(|(stage, timing)| (label(*stage), timing.count as f64));
    add("stage_seconds_count", "counter", "How often each stage was gone through", counts.collect());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::trajectory::Outcome;
    use rollout::event::{Event, Listener};

    #[test]
    fn figures_have_stages_and_outcomes() {
        let board = Board::new(0..2);
        board.event(&Event::Finished { index: 0, outcome: Outcome::Success, steps: 3 });
        let text = render(&board);
        assert!(text.contains("webgym_rollout_finished_total{outcome=\"success\"} 1"), "{text}");
        assert!(text.contains("webgym_rollout_episodes{stage=\"not_started\"} 1"), "{text}");
    }
}
