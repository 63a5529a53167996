//! Records the network traffic of leases into archives and replays it. The proxy of such a lease answers for every site:
//! it ends TLS with the [`Identity`] of this process, and passes each request on to the site or looks it up.

mod archives;
mod exchange;
mod identity;
mod intercept;
mod live;
mod log;
mod observed;
mod playback;
mod sites;
mod websocket;

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use jiff::Timestamp;
use proto::network::{Clock, NetworkOptions, NetworkReport, OnMiss};
use replay::{Archive, Cursor, MatchRules};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use archives::Archives;
pub(crate) use exchange::Dropped;
pub(crate) use identity::Identity;

use crate::{egress::Route, error::ApiError};
use archives::{Recording, redaction};
use log::Log;
use sites::Sites;

/// How long the end of a lease waits for responses that are still arriving.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The traffic of a lease.
pub(crate) struct Traffic {
    options: NetworkOptions,
    identity: Arc<Identity>,
    sites: Sites,
    replay: Option<Replay>,
    /// `None` if nothing is recorded, and after the end of the lease.
    recording: Mutex<Option<Arc<Recording>>>,
    log: Log,
    /// The pool's counter of refused connections.
    refused: Arc<AtomicU64>,
    /// Bytes of bodies that were recorded, and the most that may be.
    recorded_bytes: AtomicU64,
    max_recorded: u64,
    /// What still writes to the archive.
    writers: TaskTracker,
    /// The lease has ended: streams without end are recorded as they are.
    ended: CancellationToken,
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traffic").field("options", &self.options).finish_non_exhaustive()
    }
}

struct Replay {
    archive: Arc<Archive>,
    cursor: Mutex<Cursor>,
    on_miss: OnMiss,
}

/// How requests are compared with recordings, by the options of a lease.
fn match_rules(options: &NetworkOptions) -> MatchRules {
    let ignored_keys = options.ignore_keys.clone();
    let rules = MatchRules { ignored_keys, ..MatchRules::default() };
    // No score is above 1.
    if options.scored == Some(false) { MatchRules { threshold: 2.0, ..rules } } else { rules }
}

impl Traffic {
    /// Opens what the options of a lease name.
    pub(crate) async fn open(
        options: &NetworkOptions,
        archives: &Arc<Archives>,
        identity: &Arc<Identity>,
        route: Route,
        refused: Arc<AtomicU64>,
        max_recorded: u64,
    ) -> Result<Self, ApiError> {
        let replay = match &options.replay {
            Some(name) => {
                let archive = archives.open(name, match_rules(options)).await?;
                let cursor = match &options.session {
                    Some(session) => Cursor::for_session(Arc::clone(&archive), session),
                    None => Cursor::new(Arc::clone(&archive)),
                };
                let on_miss = options.on_miss.unwrap_or_default();
                Some(Replay { archive, cursor: Mutex::new(cursor), on_miss })
            }
            None => None,
        };
        // Misses that go to the network are recorded where the client says, otherwise into the archive itself.
        let is_live = options.on_miss == Some(OnMiss::Live);
        let recorded = options.record.as_ref().or(options.replay.as_ref().filter(|_| is_live));
        let recording = match recorded {
            Some(name) => Some(Arc::new(archives.record(name, redaction(options)).await?)),
            None => None,
        };
        Ok(Self {
            identity: Arc::clone(identity),
            sites: Sites::new(&route),
            replay,
            recording: Mutex::new(recording),
            log: Log::new(options),
            refused,
            recorded_bytes: AtomicU64::new(0),
            max_recorded,
            writers: TaskTracker::new(),
            ended: CancellationToken::new(),
            options: options.clone(),
        })
    }

    pub(crate) fn report(&self) -> NetworkReport {
        self.log.report()
    }

    /// Why the lease must not go on: a page needed what the archive lacks.
    pub(crate) fn failure(&self) -> Option<String> {
        let fails = self.replay.as_ref().is_some_and(|replay| replay.on_miss == OnMiss::Fail);
        fails.then(|| self.log.first_miss()).flatten()
    }

    /// Whether pages can only reach the archive.
    pub(crate) fn is_offline(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.on_miss != OnMiss::Live)
    }

    /// When the recording that is replayed began, and the seed of the pages; `None` if they run on the real clock.
    pub(crate) fn replayed_time(&self) -> Option<(Timestamp, u32)> {
        let replay = self.replay.as_ref().filter(|_| self.options.clock != Some(Clock::Real))?;
        let started = replay.archive.started(self.options.session.as_deref())?;
        Some((started, self.options.seed.unwrap_or_default()))
    }

    fn recording(&self) -> Option<Arc<Recording>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends with the lease: waits until what was requested is in the archive.
    pub(crate) async fn end(&self) {
        self.ended.cancel();
        self.writers.close();
        if tokio::time::timeout(DRAIN_TIMEOUT, self.writers.wait()).await.is_err() {
            tracing::warn!("responses that did not end within 3 s after their lease are not recorded");
        }
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
