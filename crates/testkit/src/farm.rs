//! A farm client for tests: the same calls on every tier, addressed the way that tier expects.

use hyper::Method;
use serde_json::{Map, Value, json};

use crate::http::{Http, Reply};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Master,
    Node,
    Instance,
}

/// The endpoints of every tier that need the API key.
pub const ENDPOINTS: [(&str, Method); 20] = [
    ("/get", Method::POST),
    ("/session", Method::GET),
    ("/reset", Method::POST),
    ("/screenshot", Method::GET),
    ("/execute", Method::POST),
    ("/observe", Method::POST),
    ("/step", Method::POST),
    ("/computer", Method::POST),
    ("/metadata", Method::GET),
    ("/probe", Method::GET),
    ("/storage_state", Method::GET),
    ("/storage_state", Method::PUT),
    ("/files", Method::GET),
    ("/files/a.txt", Method::GET),
    ("/files/a.txt", Method::PUT),
    ("/files/a.txt", Method::DELETE),
    ("/recording/recording.json", Method::GET),
    ("/network", Method::GET),
    ("/info", Method::GET),
    ("/metrics", Method::GET),
];

#[derive(Clone)]
pub struct Farm {
    pub tier: Tier,
    pub http: Http,
}

/// A lease as returned by `/get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: String,
    pub node: String,
}

impl Farm {
    pub fn new(tier: Tier, url: &str) -> Self {
        Self::with_key(tier, url, "default_key")
    }

    pub fn with_key(tier: Tier, url: &str, key: &str) -> Self {
        Self { tier, http: Http::new(url, Some(key)) }
    }

    pub async fn try_get(&self, query: &[(&str, &str)]) -> Reply {
        self.http.post("/get", query).await
    }

    /// Acquires a lease, waiting up to two minutes for a free slot.
    pub async fn get(&self) -> Lease {
        Lease::parse(&self.try_get(&[("wait_secs", "120")]).await.ok())
    }

    /// Asks for a lease with session options.
    pub async fn try_get_with(&self, options: &Value) -> Reply {
        self.http.post_json("/get", &[("wait_secs", "120")], options).await
    }

    pub async fn get_with(&self, options: &Value) -> Lease {
        Lease::parse(&self.try_get_with(options).await.ok())
    }

    /// Returns an address of the lease that contains a secret.
    async fn secret_url(&self, lease: &Lease, field: &str) -> String {
        let session = self.http.get("/session", &self.target(lease)).await.ok();
        session[field].as_str().unwrap_or_else(|| panic!("no {field}")).to_owned()
    }

    /// Returns the address of the lease for CDP clients.
    pub async fn cdp_url(&self, lease: &Lease) -> String {
        self.secret_url(lease, "cdp_url").await
    }

    /// Returns the address of the live view for watching.
    pub async fn live_url(&self, lease: &Lease) -> String {
        self.secret_url(lease, "live_url").await
    }

    /// Returns the address of the live view for taking over.
    pub async fn live_control_url(&self, lease: &Lease) -> String {
        self.secret_url(lease, "live_control_url").await
    }

    /// Asks for a part of the recording of a lease.
    pub async fn recording(&self, lease: &Lease, name: &str) -> Reply {
        self.http.get(&format!("/recording/{name}"), &self.target(lease)).await
    }

    pub async fn network(&self, lease: &Lease) -> Reply {
        self.http.get("/network", &self.target(lease)).await
    }

    pub async fn files(&self, lease: &Lease) -> Value {
        self.http.get("/files", &self.target(lease)).await.ok()
    }

    /// Sends a request for one file; the name must be percent-encoded.
    pub async fn file(
        &self,
        lease: &Lease,
        method: Method,
        name: &str,
        content: impl Into<bytes::Bytes>,
    ) -> Reply {
        let path = format!("/files/{name}");
        let headers = [("content-type", "application/octet-stream")];
        self.http.send(method, &path, &self.target(lease), content.into(), &headers).await
    }

    pub async fn storage_state(&self, lease: &Lease) -> Reply {
        self.http.get("/storage_state", &self.target(lease)).await
    }

    pub async fn set_storage_state(&self, lease: &Lease, state: &Value) -> Reply {
        let headers = [("content-type", "application/json")];
        self.http.send(Method::PUT, "/storage_state", &self.target(lease), state.to_string(), &headers).await
    }

    fn target<'a>(&self, lease: &'a Lease) -> Vec<(&'static str, &'a str)> {
        let node = (self.tier == Tier::Master).then_some(("node", lease.node.as_str()));
        std::iter::once(("instance_id", lease.id.as_str())).chain(node).collect()
    }

    pub async fn reset(&self, lease: &Lease) -> Reply {
        self.http.post("/reset", &self.target(lease)).await
    }

    pub async fn metadata(&self, lease: &Lease) -> Reply {
        self.http.get("/metadata", &self.target(lease)).await
    }

    pub async fn probe(&self, lease: &Lease) -> Reply {
        self.http.get("/probe", &self.target(lease)).await
    }

    pub async fn screenshot(&self, lease: &Lease, extra: &[(&str, &str)]) -> Reply {
        let mut query = self.target(lease);
        query.extend(extra.iter().copied());
        self.http.get("/screenshot", &query).await
    }

    /// Runs one command. The master takes the lease in the body, other tiers in the query.
    pub async fn execute(&self, lease: &Lease, command: Value) -> Reply {
        let Value::Object(command) = command else { panic!("a command must be a JSON object") };
        if self.tier == Tier::Master {
            let mut body = Map::from_iter([
                ("node".to_owned(), json!(lease.node)),
                ("instance_id".to_owned(), json!(lease.id)),
            ]);
            body.extend(command);
            return self.http.post_json("/execute", &[], &body.into()).await;
        }
        self.http.post_json("/execute", &self.target(lease), &command.into()).await
    }

    pub async fn visit(&self, lease: &Lease, url: &str) -> Value {
        self.execute(lease, json!({"visit_page": {"url": url}})).await.ok()
    }

    /// Returns the text of the whole page.
    pub async fn text(&self, lease: &Lease) -> String {
        let answer = self.execute(lease, json!({"get_webpage_text": {"n_lines": 10_000}})).await.ok();
        answer["text"].as_str().unwrap_or_default().to_owned()
    }

    pub async fn observe(&self, lease: &Lease, body: Value) -> Reply {
        self.post_observation("/observe", lease, body, &[]).await
    }

    pub async fn step(&self, lease: &Lease, body: Value) -> Reply {
        self.post_observation("/step", lease, body, &[]).await
    }

    /// Sends a model's turn to `/computer`.
    pub async fn computer(&self, lease: &Lease, body: Value) -> Reply {
        self.post_observation("/computer", lease, body, &[]).await
    }

    /// Calls `/observe` or `/step` with extra headers.
    pub async fn post_observation(
        &self,
        path: &str,
        lease: &Lease,
        body: Value,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut body = body;
        body["instance_id"] = json!(lease.id);
        if self.tier == Tier::Master {
            body["node"] = json!(lease.node);
        }
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        self.http.send(Method::POST, path, &[], body.to_string(), &all).await
    }

    pub async fn info(&self) -> Value {
        self.http.get("/info", &[]).await.ok()
    }
}

impl Lease {
    pub fn parse(answer: &Value) -> Self {
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Self { id: text("instance_id"), node: text("node") }
    }
}
