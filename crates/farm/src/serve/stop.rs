//! Drains and stops a farm: first no new leases, then the servers, then the browsers.

use std::time::Duration;

use super::Farm;

/// Added to the shutdown limit, within which the servers themselves end running requests.
const SERVER_STOP_MARGIN: Duration = Duration::from_secs(2);
const TASK_STOP_TIMEOUT: Duration = Duration::from_secs(5);
const POOL_STOP_TIMEOUT: Duration = Duration::from_secs(20);

impl Farm {
    /// Grants no new leases on the local pool and waits for the existing ones. Returns false at the timeout.
    pub async fn drain(&self, timeout: Duration) -> bool {
        match &self.pool {
            Some(pool) => tokio::time::timeout(timeout, pool.drain_and_wait()).await.is_ok(),
            None => true,
        }
    }

    /// Stops leasing, waits for running requests up to the shutdown limit, then ends every browser. Returns whether
    /// everything finished in time.
    pub async fn stop(self) -> bool {
        if let Some(master) = &self.master {
            master.stop_leasing();
        }
        if let Some(pool) = &self.pool {
            pool.stop_leasing();
        }
        self.stop_serving.cancel();
        let servers_stopped = self.servers.stop(self.limits.shutdown + SERVER_STOP_MARGIN).await;
        let tasks_stopped = self.tasks.stop(TASK_STOP_TIMEOUT).await;
        let pool_stopped = match &self.pool {
            Some(pool) => pool.stop(POOL_STOP_TIMEOUT).await,
            None => true,
        };
        servers_stopped && tasks_stopped && pool_stopped
    }
}
