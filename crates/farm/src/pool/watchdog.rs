//! Decides what becomes of browser processes that take more than their share. A renderer belongs to one tenant, so ending
//! it costs that lease only; what all tenants of a browser share is ended only when ending the busiest of them did not help.
//! Pure: it is told what was seen and says what to do.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::process::Member;

/// From where on a process takes too much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes; 0 is no limit.
    memory: u64,
    /// Clock ticks between two looks.
    ticks: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    End(Member, &'static str),
    SlowDown(Member, &'static str),
}

#[derive(Default)]
pub(crate) struct Watchdog {
    processes: HashMap<u32, Known>,
    groups: HashMap<u32, Trial>,
}

struct Known {
    renderer: bool,
    ticks: u64,
    /// Looks in a row in which it used more than its share of CPU time.
    busy: u32,
}

/// What was done about a browser that holds too much outside of its pages.
#[derive(Default)]
struct Trial {
    suspects: u32,
    pause: u32,
}

/// One thread that never rests is a page's good right; more than so many are not, for so many looks.
const MOST_CORES: f64 = 1.25;
const MOST_BUSY: u32 = 5;
/// So many looks are waited for memory to come back.
const PAUSE: u32 = 3;
const MOST_SUSPECTS: u32 = 2;

const TOO_LARGE: &str = "it holds more memory than a page may";
const SUSPECT: &str = "its browser holds too much memory, and it was the busiest";
const SHARED: &str = "it holds too much memory for all its pages together";
const BUSY: &str = "it keeps more than one CPU busy";

impl Limits {
    pub(crate) fn new(memory: u64, interval: Duration) -> Self {
        let ticks = interval.as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
        Self { memory, ticks: (ticks * MOST_CORES) as u64 }
    }
}

impl Watchdog {
    /// Processes whose kind need not be told again.
    pub(crate) fn known(&self) -> HashSet<u32> {
        self.processes.keys().copied().collect()
    }

    /// Looks at all processes of all browsers; `kinds` tells of those seen for the first time.
    pub(crate) fn judge(
        &mut self,
        members: &[Member],
        kinds: Vec<(u32, String)>,
        limits: &Limits,
    ) -> Vec<Verdict> {
        for (pid, kind) in kinds {
            let ticks = members.iter().find(|member| member.pid == pid).map_or(0, |member| member.ticks);
            self.processes.insert(pid, Known { renderer: kind == "renderer", ticks, busy: 0 });
        }
        let alive: HashSet<u32> = members.iter().map(|member| member.pid).collect();
        let browsers: HashSet<u32> = members.iter().map(|member| member.group).collect();
        self.processes.retain(|pid, _| alive.contains(pid));
        self.groups.retain(|group, _| browsers.contains(group));
        let mut verdicts = self.too_large(members, limits);
        verdicts.extend(members.iter().filter_map(|member| self.too_busy(member, limits)));
        for member in members {
            if let Some(known) = self.processes.get_mut(&member.pid) {
                known.ticks = member.ticks;
            }
        }
        verdicts
    }

    fn renderer(&self, member: &Member) -> bool {
        self.processes.get(&member.pid).is_some_and(|known| known.renderer)
    }

    /// CPU time since the last look.
    fn used(&self, member: &Member) -> u64 {
        self.processes.get(&member.pid).map_or(0, |known| member.ticks.saturating_sub(known.ticks))
    }

    fn too_large(&mut self, members: &[Member], limits: &Limits) -> Vec<Verdict> {
        let heavy = |member: &&Member| limits.memory > 0 && member.resident_bytes > limits.memory;
        let (pages, shared): (Vec<&Member>, Vec<&Member>) =
            members.iter().filter(heavy).partition(|member| self.renderer(member));
        let troubled: HashSet<u32> = shared.iter().map(|member| member.group).collect();
        self.groups.retain(|group, _| troubled.contains(group));
        let mut verdicts: Vec<Verdict> =
            pages.into_iter().map(|member| Verdict::End(*member, TOO_LARGE)).collect();
        for member in shared {
            verdicts.extend(self.relieve(member, members));
        }
        verdicts
    }

    /// The busiest page first: filling the memory of others takes work.
    fn relieve(&mut self, heavy: &Member, members: &[Member]) -> Option<Verdict> {
        let pages = members.iter().filter(|member| member.group == heavy.group && self.renderer(member));
        let suspect = pages.max_by_key(|member| self.used(member)).copied();
        let trial = self.groups.entry(heavy.group).or_default();
        if trial.pause > 0 {
            trial.pause -= 1;
            return None;
        }
        trial.pause = PAUSE;
        trial.suspects += 1;
        match suspect {
            Some(suspect) if trial.suspects <= MOST_SUSPECTS => Some(Verdict::End(suspect, SUSPECT)),
            _ => Some(Verdict::End(*heavy, SHARED)),
        }
    }

    fn too_busy(&mut self, member: &Member, limits: &Limits) -> Option<Verdict> {
        let busy = self.renderer(member) && self.used(member) > limits.ticks;
        let known = self.processes.get_mut(&member.pid)?;
        known.busy = if busy { known.busy.saturating_add(1) } else { 0 };
        (known.busy == MOST_BUSY).then_some(Verdict::SlowDown(*member, BUSY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { memory: 1000, ticks: 300 };

    /// A browser of two pages.
    struct Scene {
        watchdog: Watchdog,
        members: Vec<Member>,
    }

    impl Scene {
        fn new() -> Self {
            let member = |pid| Member { pid, group: 1, resident_bytes: 100, ticks: 0 };
            let mut scene =
                Self { watchdog: Watchdog::default(), members: [10, 11, 12].map(member).to_vec() };
            let kinds = [(10, "browser"), (11, "renderer"), (12, "renderer")];
            let kinds = kinds.map(|(pid, kind)| (pid, kind.to_owned())).to_vec();
            assert_eq!(scene.watchdog.judge(&scene.members, kinds, &LIMITS), []);
            assert_eq!(scene.watchdog.known().len(), 3);
            scene
        }

        fn look(&mut self) -> Vec<(u32, &'static str)> {
            let verdicts = self.watchdog.judge(&self.members, Vec::new(), &LIMITS);
            let told = verdicts.into_iter().map(|verdict| match verdict {
                Verdict::End(member, why) | Verdict::SlowDown(member, why) => (member.pid, why),
            });
            told.collect()
        }
    }

    #[test]
    fn a_page_that_is_too_large_is_ended_alone() {
        let mut scene = Scene::new();
        scene.members[2].resident_bytes = 1001;
        assert_eq!(scene.look(), [(12, TOO_LARGE)]);
        let unlimited = Limits { memory: 0, ..LIMITS };
        assert_eq!(scene.watchdog.judge(&scene.members, Vec::new(), &unlimited), []);
    }

    #[test]
    fn a_browser_that_is_too_large_loses_its_busiest_pages_first() {
        let mut scene = Scene::new();
        scene.members[0].resident_bytes = 1001;
        scene.members[1].ticks = 50;
        scene.members[2].ticks = 10;
        assert_eq!(scene.look(), [(11, SUSPECT)]);
        scene.members.remove(1);
        for _ in 0..PAUSE {
            assert_eq!(scene.look(), [], "memory comes back slowly");
        }
        assert_eq!(scene.look(), [(12, SUSPECT)]);
        for _ in 0..PAUSE {
            assert_eq!(scene.look(), []);
        }
        assert_eq!(scene.look(), [(10, SHARED)]);
    }

    #[test]
    fn a_browser_that_recovers_is_not_held_to_account_later() {
        let mut scene = Scene::new();
        scene.members[0].resident_bytes = 1001;
        scene.members[2].ticks = 10;
        assert_eq!(scene.look(), [(12, SUSPECT)]);
        scene.members[0].resident_bytes = 100;
        assert_eq!(scene.look(), []);
        scene.members[0].resident_bytes = 1001;
        scene.members[1].ticks = 10;
        assert_eq!(scene.look(), [(11, SUSPECT)]);
    }

    #[test]
    fn a_page_that_keeps_several_processors_busy_is_slowed_down_once() {
        let mut scene = Scene::new();
        for look in 1..=MOST_BUSY + 3 {
            scene.members[1].ticks += 301;
            scene.members[2].ticks += 300;
            scene.members[0].ticks += 900;
            let wanted = if look == MOST_BUSY { vec![(11, BUSY)] } else { Vec::new() };
            assert_eq!(scene.look(), wanted, "look {look}");
        }
    }
}
