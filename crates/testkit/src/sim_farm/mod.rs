//! A farm without browsers: a real HTTP server that speaks the master's API, keeps a page of its own for every
//! lease, and misbehaves exactly where a script says so. Remembers what was asked and how much at once.

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

use page::{Page, Pictures};

/// One request, as a script sees it.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    /// The browser command in it, or nothing.
    pub command: String,
    /// The address a `visit_page` names.
    pub url: String,
    /// Which lease of the farm it is about, counted from 0 in the order they were given out.
    pub lease: usize,
    /// How many such calls (path and command) this lease has had before.
    pub nth: usize,
    /// How many such calls the farm has had before.
    pub total: usize,
}

impl Call {
    /// Carries out this command, by whichever call.
    pub fn does(&self, command: &str) -> bool {
        self.command == command && matches!(self.path.as_str(), "/execute" | "/step")
    }

    /// Brings a picture back.
    pub fn shows(&self) -> bool {
        matches!(self.path.as_str(), "/screenshot" | "/observe" | "/step")
    }
}

/// What goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The browser died.
    InstanceLost,
    NodeUnreachable,
    Full,
    /// The page of a `visit_page` does not load.
    NavigationFailed,
    /// The farm's rules keep a `visit_page` away from its page.
    UrlRefused,
    /// The command fails by itself.
    CommandFailed,
    /// The picture is white all over.
    White,
    /// The command succeeds and changes nothing.
    NoEffect,
    /// Carried out, but the answer breaks off.
    LoseAnswer,
    /// Never answered.
    Silence,
    Slow(Duration),
}

pub type Script = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;

#[derive(Clone)]
pub struct SimFarmOptions {
    pub capacity: usize,
    /// Offers `/observe`, `/step` and `/openapi.json`; otherwise only the plain calls, as the Python system.
    pub one_trip: bool,
    /// How long every call takes.
    pub latency: Duration,
    /// Screenshots as large as those of real pages.
    pub real_size: bool,
    /// Keep every call for `calls()`.
    pub remember: bool,
    pub script: Script,
}

impl Default for SimFarmOptions {
    fn default() -> Self {
        Self {
            capacity: 64,
            one_trip: true,
            latency: Duration::ZERO,
            real_size: false,
            remember: true,
            script: Arc::new(|_| Fault::None),
        }
    }
}

impl SimFarmOptions {
    #[must_use]
    pub fn with(self, script: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), ..self }
    }
}

#[derive(Default)]
struct State {
    /// By instance id.
    leased: HashMap<String, Page>,
    by_key: HashMap<String, String>,
    given: usize,
    most_leased: usize,
    counts: HashMap<(String, String), usize>,
    calls: Vec<Call>,
    in_flight: HashMap<String, usize>,
    most_in_flight: HashMap<String, usize>,
}

struct Shared {
    options: SimFarmOptions,
    state: Mutex<State>,
    freed: tokio::sync::Notify,
    pictures: Pictures,
    requests: AtomicUsize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

pub struct SimFarm {
    shared: Arc<Shared>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl SimFarm {
    pub async fn start(options: SimFarmOptions) -> Self {
        let pictures = Pictures::new(options.real_size);
        let shared = Arc::new(Shared {
            options,
            state: Mutex::default(),
            freed: tokio::sync::Notify::new(),
            pictures,
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

    /// Leases that are out now.
    pub fn leased(&self) -> Vec<String> {
        self.shared.state().leased.keys().cloned().collect()
    }

    /// Leases that are out now and have been used: whoever took them knows of them.
    pub fn used(&self) -> Vec<String> {
        let state = self.shared.state();
        let used = |id: &&String| state.counts.keys().any(|(whose, _)| whose == *id);
        state.leased.keys().filter(used).cloned().collect()
    }

    /// Tells how many leases are out, whenever it is called and wherever.
    pub fn watch(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || shared.state().leased.len()
    }

    pub fn most_leased(&self) -> usize {
        self.shared.state().most_leased
    }

    /// Leases given out so far.
    pub fn given(&self) -> usize {
        self.shared.state().given
    }

    /// Lends an instance to somebody else than the program under test.
    pub fn lend(&self) -> String {
        serve::lease(&mut self.shared.state(), self.shared.options.capacity).expect("a free instance")
    }

    /// Takes one back.
    pub fn take_back(&self, instance: &str) {
        self.shared.state().leased.remove(instance);
        self.shared.freed.notify_waiters();
    }

    pub fn calls(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }

    /// The commands that were carried out or tried, in order.
    pub fn commands(&self) -> Vec<String> {
        let looking = ["", "get_page_metadata", "get_screenshot_info", "get_webpage_text"];
        let calls = self.calls().into_iter().map(|call| call.command);
        calls.filter(|command| !looking.contains(&command.as_str())).collect()
    }

    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// The most calls of a kind at once: get, reset, metadata, navigate, execute, screenshot, ac_tree,
    /// page_metadata, observe, step.
    pub fn most_in_flight(&self, kind: &str) -> usize {
        self.shared.state().most_in_flight.get(kind).copied().unwrap_or(0)
    }
}

impl Drop for SimFarm {
    fn drop(&mut self) {
        self.task.abort();
    }
}
