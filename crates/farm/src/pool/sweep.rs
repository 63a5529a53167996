//! Periodic maintenance of a pool: ends expired leases, replaces instances that died unnoticed, limits browser
//! processes that use too much, and holds back new leases while the machine is overloaded.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    PoolInner,
    watchdog::{ProcessLimits, Watchdog, WatchdogAction},
};
use crate::{
    audit::{self, LeaseEnd},
    pressure::{PressureMeter, SystemPressure},
    process::{footprints, list_processes, process_type},
};

const INTERVAL: Duration = Duration::from_millis(250);
/// The process table is read only every so many rounds, and less often if there are many processes: an idle farm should
/// cost next to nothing.
const ROUNDS_PER_PROCESS_CHECK: u32 = 8;
const PROCESSES_PER_CHECK: usize = 300;

pub(crate) async fn run(pool: Arc<PoolInner>) {
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut rounds, mut rounds_per_check) = (0, ROUNDS_PER_PROCESS_CHECK);
    let (mut watchdog, mut pressure) = (Watchdog::default(), PressureMeter::default());
    loop {
        tick.tick().await;
        rounds += 1;
        if rounds >= rounds_per_check {
            let processes = pool.check_processes(&mut watchdog, INTERVAL * rounds).await;
            (rounds, rounds_per_check) = (0, process_check_rounds(processes));
        }
        pool.end_expired_leases();
        pool.replace_lost_instances();
        pool.apply_pressure(pressure.read());
    }
}

/// Returns after how many rounds this many processes are checked again.
fn process_check_rounds(processes: usize) -> u32 {
    let checks = processes.div_ceil(PROCESSES_PER_CHECK).max(1);
    ROUNDS_PER_PROCESS_CHECK.saturating_mul(u32::try_from(checks).unwrap_or(u32::MAX))
}

impl PoolInner {
    /// Checks the processes of all browsers, whose last check was `interval` ago. Returns their number.
    async fn check_processes(&self, watchdog: &mut Watchdog, interval: Duration) -> usize {
        let groups = self.metrics.browser_pids();
        let known = watchdog.known_pids();
        let read = tokio::task::spawn_blocking(move || {
            let processes = list_processes(&groups);
            let new = processes.iter().filter(|process| !known.contains(&process.pid));
            let types: Vec<(u32, String)> =
                new.map(|process| (process.pid, process_type(process.pid))).collect();
            (processes, types)
        });
        let Ok((processes, types)) = read.await else { return 0 };
        self.metrics.record_footprints(&footprints(&processes));
        let limits = ProcessLimits::new(self.options.max_process_memory, interval);
        for action in watchdog.check(&processes, types, &limits) {
            self.carry_out(&action);
        }
        processes.len()
    }

    /// A killed renderer reaches its session as a page crash, like any other.
    fn carry_out(&self, action: &WatchdogAction) {
        match action {
            WatchdogAction::Kill { process, reason } => {
                let (pid, megabytes) = (process.pid, process.resident_bytes >> 20);
                tracing::warn!(pid, megabytes, reason, "killing a browser process");
                self.metrics.processes_ended.inc();
                process.kill();
            }
            WatchdogAction::Throttle { process, reason } => {
                tracing::info!(pid = process.pid, reason, "lowering the CPU priority of a page");
                process.lower_priority();
            }
        }
    }

    fn end_expired_leases(&self) {
        let mut state = self.state();
        let expired = state.end_expired(Instant::now());
        // Logged under the lock: the next lease of the slot must not be logged before the end of this one.
        for tenancy in &expired {
            audit::ended(tenancy.id(), LeaseEnd::Expired);
        }
        drop(state);
        for tenancy in expired {
            let id = *tenancy.id();
            tracing::info!(instance = %id, age = ?tenancy.age(), "lease expired unused; its slot is reclaimed");
            self.metrics.leases_expired.inc();
            self.dispose(tenancy);
            self.request_instance(id.slot);
        }
    }

    fn replace_lost_instances(&self) {
        let broken = self.state().take_broken_idle();
        for slot in broken {
            self.request_instance(slot);
        }
        let lost: Vec<_> = self
            .state()
            .tenancies()
            .filter_map(|tenancy| Some((*tenancy.id(), tenancy.lost_reason()?)))
            .collect();
        for (id, reason) in lost {
            self.lose(&id, &reason);
        }
    }

    /// Holds back new leases while the machine is overloaded.
    fn apply_pressure(&self, pressure: SystemPressure) {
        let reason = pressure.overload(self.options.min_memory_percent, self.options.max_cpu_pressure);
        let mut state = self.state();
        let was_held_back = state.held_back.is_some();
        state.held_back.clone_from(&reason);
        drop(state);
        match reason {
            Some(reason) if !was_held_back => tracing::warn!(%reason, "holding back new leases"),
            None if was_held_back => {
                tracing::info!("granting new leases again");
                self.queue.wake();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_are_checked_less_often() {
        for (processes, rounds) in [(0, 8), (300, 8), (301, 16), (600, 16), (1500, 40)] {
            assert_eq!(process_check_rounds(processes), rounds, "{processes}");
        }
    }
}
