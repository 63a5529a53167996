//! Whether the process of a loop still runs. Its state file alone does not tell: after a kill it still says "running".

use std::time::{Duration, Instant};

use serde::Serialize;
use store::{
    SavePath,
    loop_state::{Heartbeat, LoopState},
};

use crate::server::host_name;

/// Several heartbeats are missing.
const SILENT_AFTER: Duration = Duration::from_secs(4 * Heartbeat::MAX_INTERVAL.as_secs());

/// What is known about the process of a loop whose state says that it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Liveness {
    Alive {
        host: String,
        process: u32,
    },
    /// It runs on another machine, and no second heartbeat was seen yet.
    Unknown,
    /// There is no such process on this machine.
    Gone {
        host: String,
        process: u32,
    },
    /// Its heartbeat has not changed for a while.
    Silent {
        host: String,
        process: u32,
    },
}

/// The last heartbeat that was seen, and since when, by our clock.
#[derive(Debug, Default)]
pub(super) struct Observer {
    last: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    heartbeat: Heartbeat,
    since: Instant,
    /// Whether an earlier heartbeat of the same process was seen.
    has_changed: bool,
}

impl Observer {
    pub(super) fn liveness(&mut self, save_path: &SavePath, state: &LoopState) -> Liveness {
        let heartbeat = Heartbeat::read(save_path, 0)
            .filter(|heartbeat| heartbeat.run_id.as_deref() == Some(&*state.run_id));
        match heartbeat {
            Some(heartbeat) => self.observe(heartbeat, &host_name(), is_running, Instant::now()),
            None => Liveness::Unknown,
        }
    }

    fn observe(
        &mut self,
        heartbeat: Heartbeat,
        own_host: &str,
        is_running: fn(u32) -> bool,
        now: Instant,
    ) -> Liveness {
        let (host, process, is_here) =
            (heartbeat.host.clone(), heartbeat.process, heartbeat.host == own_host);
        if is_here && !is_running(process) {
            return Liveness::Gone { host, process };
        }
        let seen = self.update(heartbeat, now);
        if now.duration_since(seen.since) > SILENT_AFTER {
            Liveness::Silent { host, process }
        } else if is_here || seen.has_changed {
            Liveness::Alive { host, process }
        } else {
            Liveness::Unknown
        }
    }

    fn update(&mut self, heartbeat: Heartbeat, now: Instant) -> &Seen {
        let last = self.last.take();
        let seen = match last {
            Some(last) if last.heartbeat == heartbeat => last,
            last => {
                let is_same_process = |last: Seen| last.heartbeat.run_id == heartbeat.run_id;
                Seen { has_changed: last.is_some_and(is_same_process), heartbeat, since: now }
            }
        };
        self.last.insert(seen)
    }
}

#[cfg(target_os = "linux")]
fn is_running(process: u32) -> bool {
    std::path::Path::new("/proc").join(process.to_string()).exists()
}

/// Heartbeats alone decide.
#[cfg(not(target_os = "linux"))]
fn is_running(_process: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat(host: &str, beat: u64) -> Heartbeat {
        Heartbeat { host: host.to_owned(), process: 7, beat, run_id: Some("run".into()) }
    }

    #[test]
    fn missing_process_of_this_machine_is_gone() {
        let mut observer = Observer::default();
        let now = Instant::now();
        let gone = observer.observe(heartbeat("here", 1), "here", |_| false, now);
        assert_eq!(gone, Liveness::Gone { host: "here".into(), process: 7 });
        let alive = observer.observe(heartbeat("here", 1), "here", |_| true, now);
        assert_eq!(alive, Liveness::Alive { host: "here".into(), process: 7 });
    }

    #[test]
    fn heartbeats_decide_about_other_machines() {
        let mut observer = Observer::default();
        let start = Instant::now();
        let mut observe = |beat, seconds| {
            observer.observe(
                heartbeat("there", beat),
                "here",
                |_| false,
                start + Duration::from_secs(seconds),
            )
        };
        assert_eq!(observe(1, 0), Liveness::Unknown);
        assert_eq!(observe(1, 15), Liveness::Unknown);
        assert_eq!(observe(1, 21), Liveness::Silent { host: "there".into(), process: 7 });
        assert_eq!(observe(2, 22), Liveness::Alive { host: "there".into(), process: 7 });
        assert_eq!(observe(2, 40), Liveness::Alive { host: "there".into(), process: 7 });
        assert_eq!(observe(2, 43), Liveness::Silent { host: "there".into(), process: 7 });
    }

    #[test]
    fn own_process_is_found_running() {
        assert!(is_running(std::process::id()));
    }
}
