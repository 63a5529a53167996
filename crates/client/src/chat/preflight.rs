//! Checks a chat server before a run: whether it is one, which models it serves, and whether the wanted one is among them. A
//! server that does not list its models gets a short request instead.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::{ModelClient, ModelError};
use crate::http;

const MAX_LIST_BYTES: usize = 1 << 20;

/// A model in a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedModel {
    pub id: String,
    /// Where its weights come from, if the server says it, as vLLM does.
    pub root: Option<String>,
}

impl ModelClient {
    /// Returns the models that the server lists.
    pub async fn listed_models(&self, within: Duration) -> Result<Vec<ListedModel>, ModelError> {
        let get = self.authorized(self.http.get(format!("{}/models", self.root)));
        let response = http::send_request(get, within, MAX_LIST_BYTES).await?;
        let list: Option<Value> =
            response.status.is_success().then(|| serde_json::from_slice(&response.body).ok()).flatten();
        let Some(models) = list.as_ref().and_then(|list| list.get("data")).and_then(Value::as_array) else {
            return Err(ModelError::refused(&response));
        };
        let text = |model: &Value, key: &str| model.get(key).and_then(Value::as_str).map(str::to_owned);
        let listed = |model: &Value| Some(ListedModel { id: text(model, "id")?, root: text(model, "root") });
        Ok(models.iter().filter_map(listed).collect())
    }

    /// Returns the name of the model to use: the wanted one if it is served, or the only one if none is wanted.
    pub async fn choose_model(&self, wanted: Option<&str>, within: Duration) -> Result<String, ModelError> {
        let served = self.served(within).await?;
        let url = self.url().to_owned();
        match (wanted, served) {
            (Some(wanted), Some(served)) if served.iter().any(|name| name == wanted) => Ok(wanted.to_owned()),
            // Some servers accept any name, and gateways do not list all their models, so only a request shows it.
            (Some(wanted), served) => match self.try_model(wanted, within).await {
                Err(ModelError::Refused { status: 400 | 404, .. }) => Err(ModelError::NotServed {
                    wanted: wanted.to_owned(),
                    url,
                    served: listed(served.as_deref().unwrap_or_default()),
                }),
                Err(error @ ModelError::Refused { status: 401 | 403 | 405, .. }) => Err(error),
                _ => Ok(wanted.to_owned()),
            },
            (None, Some(served)) => match served.as_slice() {
                [only] => Ok(only.clone()),
                several => Err(ModelError::NoneNamed { url, served: listed(several) }),
            },
            (None, None) => Err(ModelError::NoneNamed { url, served: listed(&[]) }),
        }
    }

    /// Returns the number of tokens that prompt and reply of a model may have together, if the server states it.
    pub async fn max_model_len(&self, model: &str, within: Duration) -> Option<u64> {
        self.list_entry(model, within).await?.get("max_model_len")?.as_u64()
    }

    /// Returns the version of a model that the server lists: where its weights come from, as vLLM says it, or its name.
    pub async fn listed_version(&self, model: &str, within: Duration) -> Option<String> {
        let entry = self.list_entry(model, within).await?;
        let version = entry.get("root").and_then(Value::as_str).filter(|root| http::is_version(root));
        Some(version.unwrap_or(model).to_owned())
    }

    /// Returns the entry of a model in the server's list.
    async fn list_entry(&self, model: &str, within: Duration) -> Option<Value> {
        let get = self.authorized(self.http.get(format!("{}/models", self.root)));
        let response = http::send_request(get, within, MAX_LIST_BYTES).await.ok()?;
        let list: Value = serde_json::from_slice(&response.body).ok()?;
        let models = list.get("data")?.as_array()?;
        models.iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(model)).cloned()
    }

    /// Returns the models that the server lists; `None` for a chat server without a list.
    async fn served(&self, within: Duration) -> Result<Option<Vec<String>>, ModelError> {
        let get = self.authorized(self.http.get(format!("{}/models", self.root)));
        let response = http::send_request(get, within, MAX_LIST_BYTES).await?;
        if matches!(response.status.as_u16(), 300..=399 | 401 | 403 | 429 | 500..=599) {
            return Err(ModelError::refused(&response));
        }
        let list: Option<Value> = serde_json::from_slice(&response.body).ok();
        let names = list.as_ref().and_then(|list| list.get("data")).and_then(Value::as_array);
        let names = names.filter(|_| response.status.is_success()).map(|names| {
            names.iter().filter_map(|model| Some(model.get("id")?.as_str()?.to_owned())).collect()
        });
        if names.is_some() {
            return Ok(names);
        }
        let post = self.authorized(self.http.post(format!("{}/chat/completions", self.root)));
        let post = post.header("content-type", "application/json").body("{}");
        let probe = http::send_request(post, within, MAX_LIST_BYTES).await?;
        let is_json = serde_json::from_slice::<Value>(&probe.body).is_ok_and(|body| body.is_object());
        // A chat server reports missing messages; any other server does not know the path.
        if is_json && !matches!(probe.status.as_u16(), 404 | 405 | 501) {
            return Ok(None);
        }
        Err(ModelError::NoChatServer { status: probe.status.as_u16() })
    }

    /// Requests one token.
    async fn try_model(&self, model: &str, within: Duration) -> Result<(), ModelError> {
        let body =
            json!({"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hello"}]});
        let post = self.authorized(self.http.post(format!("{}/chat/completions", self.root)));
        let post = post.header("content-type", "application/json").body(body.to_string());
        self.send(post, within).await.map(drop)
    }
}

fn listed(names: &[String]) -> String {
    const MAX_SHOWN: usize = 8;
    let mut text =
        names.iter().take(MAX_SHOWN).map(|name| http::excerpt(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_SHOWN {
        let _ = write!(text, " and {} more", names.len() - MAX_SHOWN);
    }
    if text.is_empty() { "no models that it lists".to_owned() } else { text }
}
