//! A gate between turns: workers begin what they do only while it is open, and it knows when all have ended what they began.

use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Gate {
    open: watch::Sender<bool>,
    inside: watch::Sender<usize>,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    pub(crate) async fn enter(&self) -> Inside<'_> {
        let mut open = self.open.subscribe();
        loop {
            let _ = open.wait_for(|open| *open).await;
            self.inside.send_modify(|count| *count += 1);
            let inside = Inside(self);
            if *self.open.borrow() {
                return inside;
            }
        }
    }

    /// Returns when nobody is inside.
    pub(crate) async fn empty(&self) {
        let _ = self.inside.subscribe().wait_for(|count| *count == 0).await;
    }
}

pub(crate) struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_closed_gate_lets_nobody_in_and_waits_for_those_inside() {
        let gate = Gate::default();
        gate.open();
        let inside = gate.enter().await;
        gate.close();
        // No time at all: asked once.
        assert!(tokio::time::timeout(Duration::ZERO, gate.enter()).await.is_err(), "closed");
        assert!(tokio::time::timeout(Duration::ZERO, gate.empty()).await.is_err(), "somebody is inside");
        drop(inside);
        gate.empty().await;
        gate.open();
        drop(gate.enter().await);
    }
}
