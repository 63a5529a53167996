//! Looks after the slots at a steady pace: takes back leases nobody uses, replaces pages that died unseen, and
//! watches how the machine is doing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Shared,
    watchdog::{Limits, Verdict, Watchdog},
};
use crate::{
    ledger::{self, End},
    pressure::Reading,
    process::{footprints, kind, members},
};

const PACE: Duration = Duration::from_millis(250);
/// The process table is looked at every so many rounds.
const WEIGH_EVERY: u32 = 8;

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut tick = tokio::time::interval(PACE);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut round = 0_u32;
    let mut watchdog = Watchdog::default();
    loop {
        tick.tick().await;
        round = round.wrapping_add(1);
        if round.is_multiple_of(WEIGH_EVERY) {
            shared.weigh(&mut watchdog).await;
        }
        shared.take_back_expired();
        shared.replace_lost();
        shared.feel_pressure(Reading::take());
    }
}

impl Shared {
    async fn weigh(&self, watchdog: &mut Watchdog) {
        let groups = self.metrics.browser_pids();
        let known = watchdog.known();
        let seen = tokio::task::spawn_blocking(move || {
            let members = members(&groups);
            let new = members.iter().filter(|member| !known.contains(&member.pid));
            let kinds: Vec<(u32, String)> = new.map(|member| (member.pid, kind(member.pid))).collect();
            (members, kinds)
        });
        let Ok((members, kinds)) = seen.await else { return };
        self.metrics.note_footprints(&footprints(&members));
        let limits = Limits::new(self.options.max_process_memory, PACE * WEIGH_EVERY);
        for verdict in watchdog.judge(&members, kinds, &limits) {
            self.carry_out(&verdict);
        }
    }

    /// The session of a page whose process is ended hears of it as of any other crash.
    fn carry_out(&self, verdict: &Verdict) {
        let (Verdict::End(member, why) | Verdict::SlowDown(member, why)) = verdict;
        let (pid, megabytes) = (member.pid, member.resident_bytes >> 20);
        match verdict {
            Verdict::End(..) => {
                tracing::warn!(pid, megabytes, why, "a process of a browser is ended");
                self.metrics.processes_ended.inc();
                member.end();
            }
            Verdict::SlowDown(..) => {
                tracing::info!(pid, why, "a page gets only the CPU time that others leave over");
                member.slow_down();
            }
        }
    }

    fn take_back_expired(&self) {
        let mut state = self.state();
        let expired = state.end_expired(Instant::now());
        // Written under the lock: the next lease of the slot must not be entered before the end of this one.
        expired.iter().for_each(|tenancy| ledger::ended(tenancy.id(), End::Expired));
        drop(state);
        for tenancy in expired {
            let id = *tenancy.id();
            tracing::info!(instance = %id, age = ?tenancy.age(), "a lease ran out unused; the slot is taken back");
            self.metrics.leases_expired.inc();
            self.retire(tenancy);
            self.remake(id.slot);
        }
    }

    fn replace_lost(&self) {
        let broken = self.state().take_broken_idle();
        for slot in broken {
            self.remake(slot);
        }
        let lost: Vec<_> =
            self.state().tenancies().filter_map(|one| Some((*one.id(), one.lost()?))).collect();
        for (id, why) in lost {
            self.lose(&id, &why);
        }
    }

    pub(crate) fn feel_pressure(&self, reading: Reading) {
        let objection = reading.objection(self.options.min_memory_percent, self.options.max_cpu_pressure);
        let mut state = self.state();
        if state.held_back.is_some() != objection.is_some() {
            match &objection {
                Some(why) => tracing::warn!(%why, "new leases wait"),
                None => tracing::info!("new leases are given again"),
            }
        }
        let relieved = state.held_back.is_some() && objection.is_none();
        state.held_back = objection;
        drop(state);
        if relieved {
            self.queue.announce();
        }
    }
}
