//! WebVoyager: JSON Lines with `web_name`, `id`, `ques` and `web`.

use serde_json::{Map, Value};

use super::task_draft::{MEDIUM, TaskDraft, required};

pub(super) fn convert(record: &Map<String, Value>) -> Result<TaskDraft, String> {
    let (site, question) = (required(record, "web_name")?, required(record, "ques")?);
    Ok(TaskDraft {
        task_id: required(record, "id")?.into(),
        task_name: question.to_owned(),
        website: required(record, "web")?.to_owned(),
        domain: "WebVoyager".into(),
        subdomain: site.to_owned(),
        difficulty: MEDIUM,
        rubric: vec![question.to_owned()],
        ..TaskDraft::default()
    })
}
