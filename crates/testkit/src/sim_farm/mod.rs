//! A simulated farm without browsers: a real HTTP server with the master's API that keeps one simulated page per lease
//! and injects faults where a script says so. It records calls and how many were in progress at the same time.

mod page;
mod serve;
mod wire;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use page::{Page, Screenshots};
use serde_json::Value;

/// One request, as the script sees it.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    /// The browser command, or empty if there is none.
    pub command: String,
    /// The URL of a `visit_page` command.
    pub url: String,
    /// The index of the lease, from 0 in the order of acquisition.
    pub lease: usize,
    /// The number of earlier calls with this path and command on this lease.
    pub nth: usize,
    /// The number of earlier calls with this path and command on the whole farm.
    pub total: usize,
}

impl Call {
    /// Returns whether this call executes the command, through `/execute` or `/step`.
    pub fn runs(&self, command: &str) -> bool {
        self.command == command && matches!(self.path.as_str(), "/execute" | "/step")
    }

    pub fn returns_screenshot(&self) -> bool {
        matches!(self.path.as_str(), "/screenshot" | "/observe" | "/step")
    }
}

/// The fault to inject into a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The browser died.
    InstanceLost,
    NodeUnreachable,
    /// The page does not react, but its browser does.
    PageTimeout,
    Full,
    /// The page of a `visit_page` does not load.
    NavigationFailed,
    /// The egress rules of the farm refuse the URL of a `visit_page`.
    UrlRefused,
    /// The archive lacks what the page needs: this and all later commands of the lease fail.
    ReplayMiss,
    /// The command fails.
    CommandFailed,
    /// The screenshot is completely white.
    BlankScreenshot,
    /// The command succeeds and changes nothing.
    NoEffect,
    /// The command runs, but the response is truncated.
    TruncatedResponse,
    /// The request is never answered.
    NoResponse,
    Slow(Duration),
}

pub type Script = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;

#[derive(Clone)]
pub struct SimFarmOptions {
    pub capacity: usize,
    /// Offers `/observe`, `/step` and `/openapi.json`; otherwise only the calls of the Python system.
    pub combined_calls: bool,
    /// The time that every call takes.
    pub latency: Duration,
    /// Makes screenshots as large as those of real pages.
    pub real_size: bool,
    /// Records every call for `calls()`.
    pub record: bool,
    /// The response to `/network`; without it the farm does not have the call.
    pub network_report: Option<Value>,
    pub script: Script,
}

impl Default for SimFarmOptions {
    fn default() -> Self {
        Self {
            capacity: 64,
            combined_calls: true,
            latency: Duration::ZERO,
            real_size: false,
            record: true,
            network_report: None,
            script: Arc::new(|_| Fault::None),
        }
    }
}

impl SimFarmOptions {
    #[must_use]
    pub fn with_script(self, script: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), ..self }
    }
}

#[derive(Default)]
struct FarmState {
    /// By instance id.
    leased: HashMap<String, Page>,
    by_key: HashMap<String, String>,
    granted: usize,
    max_leased: usize,
    counts: HashMap<(String, String), usize>,
    calls: Vec<Call>,
    /// The session options of each lease.
    session_options: Vec<Value>,
    in_flight: HashMap<String, usize>,
    max_in_flight: HashMap<String, usize>,
}

struct FarmShared {
    options: SimFarmOptions,
    state: Mutex<FarmState>,
    freed: tokio::sync::Notify,
    screenshots: Screenshots,
    requests: AtomicUsize,
}

impl FarmShared {
    fn state(&self) -> MutexGuard<'_, FarmState> {
        self.state.lock().unwrap()
    }
}

pub struct SimFarm {
    shared: Arc<FarmShared>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl SimFarm {
    pub async fn start(options: SimFarmOptions) -> Self {
        let screenshots = Screenshots::new(options.real_size);
        let shared = Arc::new(FarmShared {
            options,
            state: Mutex::default(),
            freed: tokio::sync::Notify::new(),
            screenshots,
            requests: AtomicUsize::new(0),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = serve::router(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared, address, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the ids of the current leases.
    pub fn active_leases(&self) -> Vec<String> {
        self.shared.state().leased.keys().cloned().collect()
    }

    /// Returns the current leases that were used at least once, so that their client knows them.
    pub fn used_leases(&self) -> Vec<String> {
        let state = self.shared.state();
        let used = |id: &&String| state.counts.keys().any(|(lease, _)| lease == *id);
        state.leased.keys().filter(used).cloned().collect()
    }

    /// Returns a function that counts the current leases and can be called from anywhere.
    pub fn lease_counter(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.state().leased.len()
    }

    pub fn max_leased(&self) -> usize {
        self.shared.state().max_leased
    }

    /// Returns the number of leases granted so far.
    pub fn leases_granted(&self) -> usize {
        self.shared.state().granted
    }

    /// Leases an instance to a client other than the program under test.
    pub fn lease_to_other(&self) -> String {
        serve::lease(&mut self.shared.state(), self.shared.options.capacity).expect("a free instance")
    }

    /// Ends a lease.
    pub fn release(&self, instance: &str) {
        self.shared.state().leased.remove(instance);
        self.shared.freed.notify_waiters();
    }

    /// Returns the session options of all leases in the order of acquisition; null for a lease without options.
    pub fn session_options(&self) -> Vec<Value> {
        self.shared.state().session_options.clone()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }

    /// Returns the commands that changed the page or failed to, in order.
    pub fn commands(&self) -> Vec<String> {
        let read_only = ["", "get_page_metadata", "get_screenshot_info", "get_webpage_text"];
        let calls = self.calls().into_iter().map(|call| call.command);
        calls.filter(|command| !read_only.contains(&command.as_str())).collect()
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the highest number of concurrent calls of a kind: get, reset, metadata, navigate, execute, screenshot,
    /// ac_tree, page_metadata, observe, step.
    pub fn max_in_flight(&self, kind: &str) -> usize {
        self.shared.state().max_in_flight.get(kind).copied().unwrap_or(0)
    }
}

impl Drop for SimFarm {
    fn drop(&mut self) {
        self.task.abort();
    }
}
