//! Stops and restarts the requests of a client, for example while its server loads new weights.

use tokio::sync::watch;

/// While it is closed, no request starts; requests in progress go on. Shared by all clones of a client.
#[derive(Debug)]
pub struct CallGate(watch::Sender<bool>);

impl Default for CallGate {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl CallGate {
    pub fn close(&self) {
        self.0.send_replace(true);
    }

    pub fn open(&self) {
        self.0.send_replace(false);
    }

    pub fn is_closed(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the gate is open.
    pub async fn wait_until_open(&self) {
        // Fails only if the sender is dropped, which `self` holds.
        let _ = self.0.subscribe().wait_for(|is_closed| !is_closed).await;
    }
}
