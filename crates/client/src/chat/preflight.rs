//! First contact with a policy server, before a run costs anything: is it one, what does it serve, and does it serve
//! what we will ask for? Servers that list nothing are asked a question instead.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ModelClient, ModelError};
use crate::http;

const LARGEST_LIST: usize = 1 << 20;

impl ModelClient {
    /// The name to ask for: the one that is wanted, if it is served, else the only one there is.
    pub async fn choose_model(&self, wanted: Option<&str>, within: Duration) -> Result<String, ModelError> {
        let served = self.served(within).await?;
        let at = self.address().to_owned();
        match (wanted, served) {
            (Some(wanted), Some(served)) if served.iter().any(|name| name == wanted) => Ok(wanted.to_owned()),
            // Some servers take any name, and gateways do not list all they have: only an answer tells.
            (Some(wanted), served) => match self.try_model(wanted, within).await {
                Err(ModelError::Refused { status: 400 | 404, .. }) => Err(ModelError::NotServed {
                    wanted: wanted.to_owned(),
                    at,
                    served: listed(served.as_deref().unwrap_or_default()),
                }),
                Err(error @ ModelError::Refused { status: 401 | 403 | 405, .. }) => Err(error),
                _ => Ok(wanted.to_owned()),
            },
            (None, Some(served)) => match served.as_slice() {
                [only] => Ok(only.clone()),
                several => Err(ModelError::NoneNamed { at, served: listed(several) }),
            },
            (None, None) => Err(ModelError::NoneNamed { at, served: listed(&[]) }),
        }
    }

    /// What the server says it serves; `None` when it is a chat server that does not say.
    async fn served(&self, within: Duration) -> Result<Option<Vec<String>>, ModelError> {
        let get = self.authorized(self.http.get(format!("{}/models", self.root)));
        let received = http::exchange(get, within, LARGEST_LIST).await?;
        if matches!(received.status.as_u16(), 300..=399 | 401 | 403 | 429 | 500..=599) {
            return Err(ModelError::refused(&received));
        }
        let list: Option<Value> = serde_json::from_slice(&received.body).ok();
        let names = list.as_ref().and_then(|list| list.get("data")).and_then(Value::as_array);
        let names = names.filter(|_| received.status.is_success()).map(|names| {
            names.iter().filter_map(|model| Some(model.get("id")?.as_str()?.to_owned())).collect()
        });
        if names.is_some() {
            return Ok(names);
        }
        let post = self.authorized(self.http.post(format!("{}/chat/completions", self.root)));
        let post = post.header("content-type", "application/json").body("{}");
        let asked = http::exchange(post, within, LARGEST_LIST).await?;
        let speaks = serde_json::from_slice::<Value>(&asked.body).is_ok_and(|answer| answer.is_object());
        // A chat server misses the messages; another has no such page.
        if speaks && !matches!(asked.status.as_u16(), 404 | 405 | 501) {
            return Ok(None);
        }
        Err(ModelError::NoChatServer { status: asked.status.as_u16() })
    }

    /// Asks for one token.
    async fn try_model(&self, model: &str, within: Duration) -> Result<(), ModelError> {
        let body =
            json!({"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hello"}]});
        let post = self.authorized(self.http.post(format!("{}/chat/completions", self.root)));
        let post = post.header("content-type", "application/json").body(body.to_string());
        self.send(post, within).await.map(drop)
    }
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut words = names.iter().take(SHOWN).map(|name| http::excerpt(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        words += &format!(" and {} more", names.len() - SHOWN);
    }
    if words.is_empty() { "no model that it would name".to_owned() } else { words }
}
