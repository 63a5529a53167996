//! Lets operations on pages wait for their turn while the CPU is saturated. A machine that works on many pages at once
//! finishes fewer of them: their processes take each other's caches, and pages change again before they are captured.
//! Operations that wait for the network instead of the CPU do not keep others from starting.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use procfs::{CurrentSI, KernelStats};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::Instant,
};

/// Operations that may run at once on each core, however busy the CPU is.
const OPERATIONS_PER_CORE: usize = 4;
/// A longer operation waits for something else than the CPU, such as a slow website, and no longer counts.
const MAX_COUNTED_TIME: Duration = Duration::from_secs(2);

pub(super) struct OperationGate {
    limit: usize,
    running: Mutex<Running>,
    ended: Notify,
    /// Held by the operation whose turn is next; the others wait for it in the order of their arrival.
    turn: AsyncMutex<Box<dyn CpuLoad>>,
}

#[derive(Default)]
struct Running {
    next_id: u64,
    started: HashMap<u64, Instant>,
}

/// Says whether more operations can start than the cores allow for.
trait CpuLoad: Send {
    /// Takes one unit of the capacity that is left, if there is any.
    fn take_capacity(&mut self) -> bool;
}

/// An operation that runs. It counts until this is dropped, or for [`MAX_COUNTED_TIME`].
#[must_use]
pub(super) struct RunningOperation {
    gate: Arc<OperationGate>,
    id: u64,
}

impl OperationGate {
    pub(super) fn new() -> Arc<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_load(cores * OPERATIONS_PER_CORE, Box::new(IdleCpu::new(cores)))
    }

    fn with_load(limit: usize, load: Box<dyn CpuLoad>) -> Arc<Self> {
        let turn = AsyncMutex::new(load);
        Arc::new(Self { limit, running: Mutex::default(), ended: Notify::new(), turn })
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an operation can start: few are running, or the CPU is not saturated.
    pub(super) async fn enter(self: &Arc<Self>) -> RunningOperation {
        /// How often the load is looked at while nothing ends.
        const POLL_INTERVAL: Duration = Duration::from_millis(25);
        let mut load = self.turn.lock().await;
        loop {
            let ended = self.ended.notified();
            if let Some(operation) = self.try_start(|| load.take_capacity()) {
                return operation;
            }
            let _ = tokio::time::timeout(POLL_INTERVAL, ended).await;
        }
    }

    fn try_start(self: &Arc<Self>, has_capacity: impl FnOnce() -> bool) -> Option<RunningOperation> {
        let mut running = self.running();
        let counted = running.started.values().filter(|started| started.elapsed() < MAX_COUNTED_TIME).count();
        if counted >= self.limit && !has_capacity() {
            return None;
        }
        let id = running.next_id;
        running.next_id += 1;
        running.started.insert(id, Instant::now());
        Some(RunningOperation { gate: Arc::clone(self), id })
    }
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        self.gate.running().started.remove(&self.id);
        self.gate.ended.notify_one();
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
        tokio::time::timeout(Duration::from_millis(500), gate.enter()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn saturated_machine_lets_operations_wait_for_others() {
        let (gate, _) = gate();
        let (first, _second) = (gate.enter().await, gate.enter().await);
        assert!(is_waiting(&gate).await);
        drop(first);
        assert!(!is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_machine_starts_every_operation() {
        let (gate, saturated) = gate();
        saturated.store(false, Ordering::Relaxed);
        let mut running = Vec::new();
        for _ in 0..10 {
            running.push(gate.enter().await);
        }
        saturated.store(true, Ordering::Relaxed);
        assert!(is_waiting(&gate).await);
        saturated.store(false, Ordering::Relaxed);
        assert!(!is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn long_operation_stops_counting() {
        let (gate, _) = gate();
        let _running = (gate.enter().await, gate.enter().await);
        assert!(is_waiting(&gate).await);
        tokio::time::advance(MAX_COUNTED_TIME).await;
        assert!(!is_waiting(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn operations_start_in_order_of_arrival() {
        let (gate, _) = gate();
        let running = (gate.enter().await, gate.enter().await);
        let (sender, mut started) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..4 {
            let (gate, sender) = (Arc::clone(&gate), sender.clone());
            tokio::spawn(async move {
                let operation = gate.enter().await;
                sender.send(number).unwrap();
                drop(operation);
            });
            tokio::task::yield_now().await;
        }
        drop(running);
        for number in 0..4 {
            assert_eq!(started.recv().await, Some(number));
        }
    }

    #[test]
    fn processor_time_can_be_read() {
        let mut cpu = IdleCpu::new(2);
        cpu.read();
        assert!(cpu.total > 0 && cpu.idle <= cpu.total);
    }
}
