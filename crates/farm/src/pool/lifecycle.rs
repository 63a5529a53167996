//! Starting and stopping a pool.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::{OnceCell, Semaphore, mpsc, watch};

use super::{
    Pool, PoolCounts, PoolInner, group, network::PoolArchives, operation_gate::OperationGate,
    slots::PoolState, sweep,
};
use crate::{
    egress::{EgressProxy, Route, WEBRTC_FLAGS},
    metrics::PoolMetrics,
    options::PoolOptions,
    queue::Queue,
    tasks::Tasks,
};

impl Pool {
    /// Starts the browsers in the background; slots become available one by one.
    pub async fn start(mut options: PoolOptions) -> Result<Self, std::io::Error> {
        let tasks = Tasks::default();
        let proxy = if options.network.is_unrestricted() {
            None
        } else {
            let route = Route { rules: options.network.clone(), upstream: None };
            Some(EgressProxy::start(route, &tasks).await?)
        };
        options.launch.extra_flags.extend(proxy.iter().flat_map(EgressProxy::browser_flags));
        let archives =
            options.archives.as_ref().map(|root| PoolArchives::create(root, &tasks)).transpose()?;
        options.launch.extra_flags.extend(archives.iter().flat_map(PoolArchives::browser_flags));
        if proxy.is_some() || archives.is_some() {
            options.launch.extra_flags.extend(WEBRTC_FLAGS.map(str::to_owned));
        }
        options.launch.memory_limit = Some(options.max_process_memory).filter(|max| *max > 0);
        options.launch.window_size = options.instance.viewport;
        let slots_per_group = options.instances_per_browser.max(1);
        let browsers = options.instances.div_ceil(slots_per_group);
        let (groups, inboxes): (Vec<_>, Vec<_>) = (0..browsers).map(|_| mpsc::unbounded_channel()).unzip();
        let state = PoolState::new(options.instances, options.first_port, slots_per_group);
        let inner = Arc::new(PoolInner {
            start_permits: Semaphore::new(options.max_parallel.max(1)),
            operations: OperationGate::new(),
            state: Mutex::new(state),
            groups,
            queue: Queue::default(),
            version: watch::Sender::new(0),
            metrics: PoolMetrics::default(),
            tasks,
            proxy,
            archives,
            protocol: OnceCell::new(),
            options,
        });
        for (index, inbox) in inboxes.into_iter().enumerate() {
            inner.tasks.spawn("browser", group::run(Arc::clone(&inner), index, inbox));
        }
        inner.tasks.spawn_until_stopped("sweep", sweep::run(Arc::clone(&inner)));
        Ok(Self(inner))
    }

    /// Waits until every slot is ready, and reports the counts after each change.
    pub async fn ready(&self, mut progress: impl FnMut(&PoolCounts)) {
        let mut changes = self.changes();
        loop {
            let counts = self.counts();
            progress(&counts);
            if counts.starting + counts.dead == 0 || changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Grants no new leases from now on.
    pub fn stop_leasing(&self) {
        self.0.state().closing = true;
        self.0.queue.wake();
        self.0.publish_change();
    }

    /// Ends every browser. Returns whether all were gone before the timeout.
    pub async fn stop(&self, timeout: Duration) -> bool {
        self.stop_leasing();
        let leases = self.counts().in_use;
        if leases > 0 {
            tracing::warn!(leases, "the farm is shutting down and ends its leases");
        }
        self.0.tasks.stop(timeout).await
    }
}
