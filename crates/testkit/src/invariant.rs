//! The slots of a farm by state, read from `/metrics`, and the sum that must always come out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::Method;
use tokio::task::JoinHandle;

use crate::{http::Http, webgym::Webgym};

/// Slots by state, and the browsers behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    pub available: usize,
    pub in_use: usize,
    pub starting: usize,
    pub dead: usize,
    pub capacity: usize,
    pub browsers: usize,
    pub restarts: usize,
    pub waiting: usize,
    pub lost: usize,
    pub expired: usize,
}

impl Slots {
    /// As a node (or a master with one inside) tells them now.
    pub async fn of(http: &Http) -> Self {
        Self::read(&http.get("/metrics", &[]).await.text())
    }

    /// Reads Prometheus' text.
    pub fn read(metrics: &str) -> Self {
        Self::try_read(metrics).unwrap_or_else(|name| panic!("no {name} in\n{metrics}"))
    }

    /// The same of a text that may be cut short; the error names what is missing.
    pub fn try_read(metrics: &str) -> Result<Self, String> {
        let value = |name: &str| -> Result<usize, String> {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|count| count.trim().parse().ok()).ok_or_else(|| name.to_owned())
        };
        let state = |state: &str| value(&format!("webgym_slots{{state=\"{state}\"}}"));
        Ok(Self {
            available: state("available")?,
            in_use: state("in_use")?,
            starting: state("starting")?,
            dead: state("dead")?,
            capacity: value("webgym_capacity")?,
            browsers: value("webgym_browsers")?,
            restarts: value("webgym_browser_restarts_total")?,
            waiting: value("webgym_get_queue_length")?,
            lost: value("webgym_instances_lost_total")?,
            expired: value("webgym_leases_expired_total")?,
        })
    }

    /// Every slot is in exactly one state.
    pub fn add_up(&self) -> bool {
        self.available + self.in_use + self.starting + self.dead == self.capacity
    }

    /// Every slot is clean and waiting.
    pub fn all_free(&self) -> bool {
        self.available == self.capacity
    }

    /// Waits until every slot is free and there are as many browsers as the farm says.
    pub async fn come_back(webgym: &Webgym, http: &Http, limit: Duration) -> Self {
        let what =
            format!("all slots of {} are free again, and its browsers are those it counts", http.base());
        crate::poll_until(&what, limit, async || {
            let slots = Self::of(http).await;
            (slots.all_free() && slots.browsers == webgym.browsers().len()).then_some(slots)
        })
        .await
    }
}

/// Looks at the sum all the time, as often as the farm answers.
#[must_use = "ask it how it went"]
pub struct Watch {
    stop: Arc<AtomicBool>,
    looking: JoinHandle<(usize, Vec<Slots>)>,
}

impl Watch {
    pub fn start(http: &Http) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (until, http) = (Arc::clone(&stop), http.clone());
        let looking = tokio::spawn(async move {
            let (mut looks, mut wrong) = (0, Vec::new());
            while !until.load(Ordering::Relaxed) {
                if let Ok(reply) = http.try_send(Method::GET, "/metrics", &[], "", &[]).await {
                    let slots = Slots::read(&reply.text());
                    looks += 1;
                    wrong.extend((!slots.add_up()).then_some(slots));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            (looks, wrong)
        });
        Self { stop, looking }
    }

    /// How often it looked, and what did not add up.
    pub async fn end(self) -> (usize, Vec<Slots>) {
        self.stop.store(true, Ordering::Relaxed);
        self.looking.await.expect("the watch goes on")
    }

    /// Stops the test if it ever did not add up.
    pub async fn held(self) {
        let (looks, wrong) = self.end().await;
        assert!(looks > 0, "never looked");
        assert!(wrong.is_empty(), "{} of {looks} times: {:?}", wrong.len(), wrong[0]);
    }
}
