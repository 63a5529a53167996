//! Keeps one live browser: makes instances for its slots and a few spares, checks that it still answers, and
//! says when its time is over.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use browser::{BrowserError, Host, Instance};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Interval, MissedTickBehavior, interval_at},
};

use super::{Shared, group::Wish, slots::SlotState};

/// Why a browser's watch is over.
pub(crate) enum Over {
    Died(String),
    Recycle(&'static str),
    Stopped,
}

const CHECK_EVERY: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// A browser in which so many instances in a row cannot be made is no use, however alive it seems.
const MOST_FAILURES: u32 = 5;

/// What one making came to: for a slot, or a spare.
type Made = (Option<u16>, Result<Instance, BrowserError>);

pub(crate) struct Keeper {
    shared: Arc<Shared>,
    index: usize,
    host: Arc<Host>,
    started: Instant,
    making: JoinSet<Made>,
    pings: JoinSet<Result<(), String>>,
    spares: VecDeque<Instance>,
    spares_coming: usize,
    failures: u32,
    retiring: Option<&'static str>,
    check: Interval,
}

impl Keeper {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, host: Host) -> Self {
        let mut check = interval_at((Instant::now() + CHECK_EVERY).into(), CHECK_EVERY);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            index,
            host: Arc::new(host),
            started: Instant::now(),
            making: JoinSet::new(),
            pings: JoinSet::new(),
            spares: VecDeque::new(),
            spares_coming: 0,
            failures: 0,
            retiring: None,
            check,
        }
    }

    /// The browser, once nothing of ours uses it any more.
    pub(crate) async fn give_back(mut self) -> Option<Host> {
        self.making.shutdown().await;
        self.pings.shutdown().await;
        self.spares.clear();
        Arc::into_inner(self.host)
    }

    pub(crate) async fn run(&mut self, wishes: &mut mpsc::UnboundedReceiver<Wish>) -> Over {
        let stop = self.shared.tasks.stopping().clone();
        let connection = self.host.connection().clone();
        let ports = self.shared.state().ports_of(self.index);
        for port in ports {
            self.make(Some(port), true);
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return Over::Stopped,
                gone = connection.wait_closed() => return Over::Died(gone.to_string()),
                Some(wish) = wishes.recv() => self.grant(&wish),
                Some(made) = self.making.join_next() => match made {
                    Ok(made) => self.made(made),
                    Err(bug) => return Over::Died(bug.to_string()),
                },
                Some(ping) = self.pings.join_next() => {
                    if let Ok(Err(why)) = ping {
                        return Over::Died(why);
                    }
                }
                _ = self.check.tick() => self.look_over(),
            }
            if self.failures >= MOST_FAILURES {
                return Over::Died("no instances can be made in it any more".into());
            }
            if let Some(why) = self.retiring
                && self.shared.state().leases_of(self.index).is_empty()
            {
                return Over::Recycle(why);
            }
        }
    }

    fn grant(&mut self, wish: &Wish) {
        if self.retiring.is_some() {
            return;
        }
        while let Some(spare) = self.spares.pop_front() {
            if spare.lost_reason().is_none() {
                self.shared.fill(wish.slot, spare);
                self.top_up();
                return;
            }
        }
        self.make(Some(wish.slot), false);
    }

    /// Starts making an instance. In the rush of a start it is done in turns, a few at a time over the whole
    /// pool; later on one browser that hangs must not keep the others from theirs.
    fn make(&mut self, slot: Option<u16>, in_turn: bool) {
        let (shared, host) = (Arc::clone(&self.shared), Arc::clone(&self.host));
        self.making.spawn(async move {
            let _turn = if in_turn { shared.making.acquire().await.ok() } else { None };
            let started = Instant::now();
            let made = host.instance(&shared.options.instance).await;
            shared.metrics.operation("make", started.elapsed(), made.is_ok());
            if made.is_err() {
                // Not in a tight loop; and if the browser is dying its end will be seen meanwhile.
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            (slot, made)
        });
    }

    fn made(&mut self, (slot, made): Made) {
        self.spares_coming -= usize::from(slot.is_none());
        self.failures = if made.is_ok() { 0 } else { self.failures + 1 };
        match (slot, made) {
            (_, Ok(_)) if self.retiring.is_some() => {}
            (Some(slot), Ok(instance)) => {
                self.shared.fill(slot, instance);
                self.top_up();
            }
            (None, Ok(instance)) => self.spares.push_back(instance),
            (slot, Err(error)) => {
                tracing::warn!(browser = self.index, %error, "an instance could not be made; trying again");
                if slot.is_some() {
                    self.make(slot, false);
                }
            }
        }
    }

    /// Spares are made only once every slot has its instance.
    fn top_up(&mut self) {
        let wanted = self.shared.options.spares;
        let slots_done = self.making.len() == self.spares_coming;
        while slots_done && self.spares.len() + self.spares_coming < wanted {
            self.spares_coming += 1;
            self.make(None, false);
        }
    }

    fn look_over(&mut self) {
        let options = &self.shared.options;
        if self.pings.is_empty() {
            let (connection, limit) = (self.host.connection().clone(), options.hang_limit);
            self.pings.spawn(async move { ping(&connection, limit).await });
        }
        let slots = self.shared.state().ports_of(self.index).len() as u64;
        let most = options.max_browser_rss * slots.max(1);
        let oldest = lifespan(options.max_browser_age, self.index);
        let resident = self.shared.metrics.browser_footprint(self.index).resident_bytes;
        let (aged, large) = (self.started.elapsed() > oldest, resident > most);
        let idle = self.shared.state().leases_of(self.index).is_empty();
        let urgent = self.started.elapsed() > oldest * 2 || resident > most * 2;
        self.top_up();
        if (aged || large) && (idle || urgent) {
            self.retire(if large { "it has grown too large" } else { "it has run for long enough" });
        }
    }

    /// No new tenants; it is over when the last one has left.
    fn retire(&mut self, why: &'static str) {
        self.retiring = Some(why);
        self.spares.clear();
        let mut state = self.shared.state();
        for port in state.ports_of(self.index) {
            state.set(port, SlotState::Starting);
        }
        drop(state);
        self.shared.note_change();
    }
}

/// Browsers that were started together do not all retire together.
fn lifespan(oldest: Duration, index: usize) -> Duration {
    oldest + oldest.mul_f64((index % 16) as f64 / 64.0)
}

async fn ping(connection: &browser::Connection, limit: Duration) -> Result<(), String> {
    match connection.ping(limit).await {
        Ok(()) => Ok(()),
        Err(error) => Err(format!("it does not answer any more ({error})")),
    }
}
