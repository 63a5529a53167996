//! Observations, state and prompts of an episode, as its client and its record get them.

use std::path::Path;

use proto::trajectory::Outcome;
use serde_json::{Map, Value, json};

use super::{Ended, Episode};
use crate::catalog::id_text;

impl Episode {
    /// Returns the data of an `observation` message.
    pub(crate) fn observation(&self) -> Value {
        let page = &self.page;
        let axtree = page.axtree();
        let mut observation = Map::from_iter([
            ("goal".to_owned(), json!(self.task.task_name)),
            ("url".to_owned(), json!(page.url)),
            ("title".to_owned(), json!(page.title)),
            ("text".to_owned(), json!(axtree)),
            ("axtree_txt".to_owned(), json!(axtree)),
            ("pruned_html".to_owned(), json!("")),
            ("error".to_owned(), json!(page.failure.as_deref().unwrap_or_default())),
            ("last_action_error".to_owned(), json!(page.failure.is_some())),
        ]);
        if let Some(result) = page.result.as_ref().filter(|result| has_content(result)) {
            observation.insert("result".to_owned(), result.clone());
        }
        if let Some((data, format)) = page.encoded_screenshot().filter(|_| self.sends_screenshot) {
            observation.insert("screenshot_base64".to_owned(), Value::String(data));
            observation.insert("screenshot_format".to_owned(), json!(format.as_str()));
        }
        let metadata = self.metadata();
        observation.insert("metadata".to_owned(), metadata.clone());
        Value::Object(Map::from_iter([
            ("observation".to_owned(), Value::Object(observation)),
            ("reward".to_owned(), json!(self.reward())),
            ("done".to_owned(), json!(self.ended.is_some())),
            ("metadata".to_owned(), metadata),
        ]))
    }

    /// Returns the reward of the last step: none before the first, 0 until the end, then what the judge decided.
    fn reward(&self) -> Option<f64> {
        match &self.ended {
            Some(ended) => ended.reward,
            None => (!self.steps.is_empty()).then_some(0.0),
        }
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({
            "episode_id": self.id, "task_id": self.task_id(), "split": self.split, "step_count": self.steps.len(),
            "infra_lost": false,
        });
        if let Some(Ended { outcome, reason, .. }) = &self.ended {
            metadata["infra_lost"] = json!(*outcome == Outcome::InfraLost);
            metadata["outcome"] = json!(outcome.as_str());
            metadata["reason"] = json!(reason);
        }
        metadata
    }

    fn task_id(&self) -> Option<String> {
        self.task.task_id.as_ref().map(id_text)
    }

    /// Returns the data of a `state` message.
    pub(crate) fn state(&self) -> Value {
        json!({
            "episode_id": self.id, "step_count": self.steps.len(), "split": self.split, "benchmark": self.split,
            "task_id": self.task_id(), "task_name": self.task_id().unwrap_or_default(), "goal": self.task.task_name,
            "current_url": self.page.url, "max_steps": (self.task.max_steps < i64::MAX).then_some(self.task.max_steps),
            "cum_reward": self.reward().unwrap_or(0.0), "done": self.ended.is_some(),
        })
    }

    /// Returns what the agent was shown as a message of a chat, for exports: the prompt of the client's model is not known here.
    pub(super) fn prompt(&self, screenshot: &Path) -> String {
        let mut text = format!(
            "Task: {}\nPage: {} at {}\nElements:\n{}",
            self.task.task_name,
            self.page.title,
            self.page.url,
            self.page.axtree()
        );
        if let Some(failure) = &self.page.failure {
            text.push_str("\nThe last action failed: ");
            text.push_str(failure);
        }
        let mut content = vec![json!({"type": "text", "text": text})];
        if !screenshot.as_os_str().is_empty() {
            let url = format!("file://{}", screenshot.display());
            content.push(json!({"type": "image_url", "image_url": {"url": url}}));
        }
        json!([{"role": "user", "content": content}]).to_string()
    }
}

/// Returns whether a command's result says more than that it ran.
fn has_content(result: &Value) -> bool {
    match result {
        Value::Null => false,
        Value::Object(fields) => fields.keys().any(|name| name != "status"),
        _ => true,
    }
}
