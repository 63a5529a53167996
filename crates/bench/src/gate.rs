//! A gate that pauses workers between turns: they start a step only while it is open, and it can wait until all
//! started steps have ended.

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Gate {
    is_open: watch::Sender<bool>,
    active: watch::Sender<usize>,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(crate) fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// Waits until the gate is open.
    pub(crate) async fn enter(&self) -> ActiveGuard<'_> {
        let mut is_open = self.is_open.subscribe();
        loop {
            let _ = is_open.wait_for(|is_open| *is_open).await;
            self.active.send_modify(|count| *count += 1);
            let guard = ActiveGuard(self);
            // The gate may have closed before the count was increased.
            if *self.is_open.borrow() {
                return guard;
            }
        }
    }

    /// Waits until all guards are dropped.
    pub(crate) async fn wait_until_idle(&self) {
        let _ = self.active.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Counts as active until it is dropped.
pub(crate) struct ActiveGuard<'a>(&'a Gate);

impl Drop for ActiveGuard<'_> {
    fn drop(&mut self) {
        self.0.active.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn closed_gate_blocks_entry_and_waits_for_guards() {
        let gate = Gate::default();
        gate.open();
        let guard = gate.enter().await;
        gate.close();
        // A zero timeout polls the future once.
        assert!(tokio::time::timeout(Duration::ZERO, gate.enter()).await.is_err(), "the gate is closed");
        assert!(
            tokio::time::timeout(Duration::ZERO, gate.wait_until_idle()).await.is_err(),
            "a guard is held"
        );
        drop(guard);
        gate.wait_until_idle().await;
        gate.open();
        drop(gate.enter().await);
    }
}
