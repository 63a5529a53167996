//! Lets operations on pages wait for their turn while the CPU is saturated. A machine that works on many pages at once
//! finishes fewer of them: their processes take each other's caches, and pages change again before they are captured. So the
//! pages of a busy browser also have their turn before those of an idle one. Operations that wait for the network instead of
//! the CPU do not keep others from starting.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use procfs::{CurrentSI, KernelStats};
use tokio::{sync::Notify, time::Instant};

/// Operations that may run at once on each core, however busy the CPU is.
const OPERATIONS_PER_CORE: usize = 4;
/// A longer operation waits for something else than the CPU, such as a slow website, and no longer counts.
const MAX_COUNTED_TIME: Duration = Duration::from_secs(2);

/// How many later operations may start before a waiting one, because their browsers are at work.
const MAX_OVERTAKEN: usize = 12;

pub(super) struct OperationGate {
    limit: usize,
    state: Mutex<State>,
}

struct State {
    next_id: u64,
    running: HashMap<u64, Running>,
    /// In the order of their arrival.
    waiting: VecDeque<Waiting>,
    load: Box<dyn CpuLoad>,
}

struct Running {
    started: Instant,
    browser: usize,
}

struct Waiting {
    id: u64,
    browser: usize,
    /// How many later operations have started before this one.
    overtaken: usize,
    /// Wakes it when it has started, or when it has become the first.
    wake: Arc<Notify>,
}

/// Says whether more operations can start than the cores allow for.
trait CpuLoad: Send {
    /// Takes one unit of the capacity that is left, if there is any.
    fn take_capacity(&mut self) -> bool;
}

/// An operation that waits or runs until this is dropped. It counts for at most [`MAX_COUNTED_TIME`].
#[must_use]
pub(super) struct GatedOperation {
    gate: Arc<OperationGate>,
    id: u64,
}

impl OperationGate {
    pub(super) fn new() -> Arc<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_load(cores * OPERATIONS_PER_CORE, Box::new(IdleCpu::new(cores)))
    }

    fn with_load(limit: usize, load: Box<dyn CpuLoad>) -> Arc<Self> {
        let state = State { next_id: 0, running: HashMap::new(), waiting: VecDeque::new(), load };
        Arc::new(Self { limit, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an operation on a page of `browser` can start: few are running, or the CPU is not saturated.
    pub(super) async fn enter(self: &Arc<Self>, browser: usize) -> GatedOperation {
        /// How often the load is looked at while nothing ends.
        const POLL_INTERVAL: Duration = Duration::from_millis(25);
        let wake = Arc::new(Notify::new());
        let id = self.state().add(browser, Arc::clone(&wake));
        let operation = GatedOperation { gate: Arc::clone(self), id };
        loop {
            let (is_running, is_first) = {
                let mut state = self.state();
                state.start_waiting(self.limit);
                (state.running.contains_key(&id), state.waiting.front().is_some_and(|first| first.id == id))
            };
            if is_running {
                return operation;
            }
            // One looks at the load for all.
            if is_first {
                let _ = tokio::time::timeout(POLL_INTERVAL, wake.notified()).await;
            } else {
                wake.notified().await;
            }
        }
    }
}

impl State {
    fn add(&mut self, browser: usize, wake: Arc<Notify>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.push_back(Waiting { id, browser, overtaken: 0, wake });
        id
    }

    fn remove_waiting(&mut self, position: usize) -> Option<Waiting> {
        let removed = self.waiting.remove(position)?;
        if let Some(first) = self.waiting.front().filter(|_| position == 0) {
            first.wake.notify_one();
        }
        Some(removed)
    }

    /// Starts the operations that there is room for.
    fn start_waiting(&mut self, limit: usize) {
        while !self.waiting.is_empty() {
            let counted = self.counted_by_browser();
            if counted.values().sum::<usize>() >= limit && !self.load.take_capacity() {
                return;
            }
            let next = self.position_of_next(&counted);
            self.waiting.iter_mut().take(next).for_each(|waiting| waiting.overtaken += 1);
            let Some(Waiting { id, browser, wake, .. }) = self.remove_waiting(next) else { return };
            self.running.insert(id, Running { started: Instant::now(), browser });
            wake.notify_one();
        }
    }

    /// Returns the number of running operations that use the CPU, by browser.
    fn counted_by_browser(&self) -> HashMap<usize, usize> {
        let mut counted = HashMap::new();
        for running in self.running.values().filter(|running| running.started.elapsed() < MAX_COUNTED_TIME) {
            *counted.entry(running.browser).or_default() += 1;
        }
        counted
    }

    /// Returns the position of the operation whose turn is next: the first one of the busiest browser, whose data is in the
    /// caches of the processor, unless an earlier one has been overtaken too often.
    fn position_of_next(&self, counted: &HashMap<usize, usize>) -> usize {
        if self.waiting.front().is_none_or(|first| first.overtaken >= MAX_OVERTAKEN) {
            return 0;
        }
        let running_beside = |position: &usize| counted.get(&self.waiting[*position].browser).unwrap_or(&0);
        (0..self.waiting.len()).min_by_key(|position| Reverse(running_beside(position))).unwrap_or(0)
    }
}

impl Drop for GatedOperation {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.running.remove(&self.id);
        if let Some(position) = state.waiting.iter().position(|waiting| waiting.id == self.id) {
            state.remove_waiting(position);
        }
        state.start_waiting(self.gate.limit);
    }
}

/// Reads from `/proc/stat` whether the cores are idle at times. What cannot be read counts as idle.
struct IdleCpu {
    cores: usize,
    read: Instant,
    idle: u64,
    total: u64,
    /// Operations that may start before the next reading.
    capacity: usize,
}

impl IdleCpu {
    /// Long enough that the kernel's ticks of 10 ms show an idle core.
    const MIN_PERIOD: Duration = Duration::from_millis(50);
    /// A CPU that is idle for a smaller share of the time is saturated.
    const MIN_IDLE_PERCENT: u64 = 10;

    fn new(cores: usize) -> Self {
        Self { cores, read: Instant::now(), idle: 0, total: 0, capacity: cores }
    }

    fn read(&mut self) {
        self.read = Instant::now();
        let Ok(KernelStats { total: cpu, .. }) = KernelStats::current() else {
            self.capacity = usize::MAX;
            return;
        };
        let idle = cpu.idle + cpu.iowait.unwrap_or(0);
        let total = idle
            + cpu.user
            + cpu.nice
            + cpu.system
            + cpu.irq.unwrap_or(0)
            + cpu.softirq.unwrap_or(0)
            + cpu.steal.unwrap_or(0);
        let (idle_since, total_since) = (idle.saturating_sub(self.idle), total.saturating_sub(self.total));
        (self.idle, self.total) = (idle, total);
        let is_idle = idle_since * 100 >= total_since * Self::MIN_IDLE_PERCENT;
        self.capacity = if is_idle { self.cores } else { 0 };
    }
}

impl CpuLoad for IdleCpu {
    fn take_capacity(&mut self) -> bool {
        if self.read.elapsed() >= Self::MIN_PERIOD {
            self.read();
        }
        let has_capacity = self.capacity > 0;
        self.capacity = self.capacity.saturating_sub(1);
        has_capacity
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct SetLoad(Arc<AtomicBool>);

    impl CpuLoad for SetLoad {
        fn take_capacity(&mut self) -> bool {
            !self.0.load(Ordering::Relaxed)
        }
    }

    /// A gate for two operations on a machine that is saturated while the flag is set.
    fn gate() -> (Arc<OperationGate>, Arc<AtomicBool>) {
        let saturated = Arc::new(AtomicBool::new(true));
        (OperationGate::with_load(2, Box::new(SetLoad(Arc::clone(&saturated)))), saturated)
    }

    async fn is_waiting(gate: &Arc<OperationGate>) -> bool {
        tokio::time::timeout(Duration::from_millis(500), gate.enter(0)).await.is_err()
    }

    /// Lets operations of these browsers enter one after the other, and returns them in the order in which they start, each
    /// when the one before has ended.
    async fn order_of_starts(
        gate: &Arc<OperationGate>,
        browsers: &[usize],
        running: GatedOperation,
    ) -> Vec<usize> {
        let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
        for (number, browser) in browsers.iter().copied().enumerate() {
            let (gate, sender) = (Arc::clone(gate), sender.clone());
            tokio::spawn(async move {
                let operation = gate.enter(browser).await;
                sender.send((number, operation)).unwrap();
            });
            tokio::task::yield_now().await;
        }
        drop((running, sender));
        let mut order = Vec::new();
        while let Some((number, operation)) = started.recv().await {
            order.push(number);
            drop(operation);
        }
        order
    }

    #[tokio::test(start_paused = true)]
    async fn saturated_machine_lets_operations_wait_for_others() {
        let (gate, _) = gate();
        let (first, _second) = (gate.enter(0).await, gate.enter(1).await);
        assert!(is_waiting(&gate).await);
        drop(first);
        assert!(!is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_machine_starts_every_operation() {
        let (gate, saturated) = gate();
        saturated.store(false, Ordering::Relaxed);
        let mut running = Vec::new();
        for browser in 0..10 {
            running.push(gate.enter(browser).await);
        }
        saturated.store(true, Ordering::Relaxed);
        assert!(is_waiting(&gate).await);
        saturated.store(false, Ordering::Relaxed);
        assert!(!is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn long_operation_stops_counting() {
        let (gate, _) = gate();
        let _running = (gate.enter(0).await, gate.enter(0).await);
        assert!(is_waiting(&gate).await);
        tokio::time::advance(MAX_COUNTED_TIME).await;
        assert!(!is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn operations_of_one_browser_start_in_order_of_arrival() {
        let (gate, _) = gate();
        let (running, _other) = (gate.enter(0).await, gate.enter(0).await);
        assert_eq!(order_of_starts(&gate, &[0, 0, 0, 0], running).await, [0, 1, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn busy_browser_has_its_turn_first() {
        let (gate, _) = gate();
        let (running, _other) = (gate.enter(0).await, gate.enter(0).await);
        assert_eq!(order_of_starts(&gate, &[1, 0, 2, 0, 1], running).await, [1, 3, 0, 2, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn browser_that_waits_for_websites_is_not_busy() {
        let (gate, _) = gate();
        let _slow = (gate.enter(0).await, gate.enter(0).await);
        tokio::time::advance(MAX_COUNTED_TIME).await;
        let (running, _other) = (gate.enter(1).await, gate.enter(1).await);
        assert_eq!(order_of_starts(&gate, &[0, 1], running).await, [1, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn operation_is_overtaken_a_limited_number_of_times() {
        let (gate, _) = gate();
        let (running, _other) = (gate.enter(0).await, gate.enter(0).await);
        let browsers: Vec<usize> = std::iter::once(1).chain([0; MAX_OVERTAKEN + 5]).collect();
        let order = order_of_starts(&gate, &browsers, running).await;
        assert_eq!(order.iter().position(|number| *number == 0), Some(MAX_OVERTAKEN), "{order:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_operation_does_not_keep_others_waiting() {
        let (gate, _) = gate();
        let running = (gate.enter(0).await, gate.enter(0).await);
        // Its future is dropped while it waits.
        assert!(is_waiting(&gate).await);
        drop(running);
        let _both = (gate.enter(0).await, gate.enter(0).await);
        assert!(is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn next_waiter_polls_the_load_after_the_first_was_cancelled() {
        let (gate, saturated) = gate();
        let _running = (gate.enter(0).await, gate.enter(0).await);
        let first = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.enter(1).await }
        });
        tokio::task::yield_now().await;
        let second = tokio::spawn({
            let gate = Arc::clone(&gate);
            async move { gate.enter(1).await }
        });
        tokio::task::yield_now().await;
        first.abort();
        assert!(first.await.is_err(), "aborted while it waits");
        saturated.store(false, Ordering::Relaxed);
        let started = tokio::time::timeout(Duration::from_secs(1), second).await;
        assert!(started.is_ok());
    }

    #[test]
    fn processor_time_can_be_read() {
        let mut cpu = IdleCpu::new(2);
        cpu.read();
        assert!(cpu.total > 0 && cpu.idle <= cpu.total);
    }
}
