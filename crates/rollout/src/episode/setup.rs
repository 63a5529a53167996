//! Prepares the start page with the task's own script, before the agent sees the page.

use proto::trajectory::Task;
use serde_json::Value;

use crate::judge::program::JudgedPage;

/// The field of a task with JavaScript that runs in the start page.
pub const FIELD: &str = "setup";

/// Runs the task's setup script. Returns whether it has one. A page that cannot be prepared is not the agent's fault, and
/// another attempt would fail too.
pub async fn prepare_page(task: &Task, page: &dyn JudgedPage) -> Result<bool, String> {
    let Some(script) =
        task.extra.get(FIELD).and_then(Value::as_str).filter(|script| !script.trim().is_empty())
    else {
        return Ok(false);
    };
    let expression = format!("(async () => {{\n{script}\n}})()");
    page.evaluate(&expression).await.map(|_| true)
}
