//! A node's sign of life in the registry: its address under its name, renewed well before it runs out.

use std::time::Duration;

use super::{Link, PREFIX, RegistryError};
use crate::tasks::Tasks;

const TTL_SECS: u64 = 120;
const BEAT: Duration = Duration::from_secs(30);
/// While Redis is away, look for it this often.
const LOOK: Duration = Duration::from_secs(2);

/// Registers until stopped, then takes the name out again.
pub(crate) async fn heartbeat(link: Link, name: String, id: String, url: String, tasks: Tasks) {
    let stop = tasks.stopping().clone();
    let mut key = format!("{PREFIX}{name}");
    let mut known = true;
    loop {
        let beat = async {
            // Two machines of one name must not take each other's place.
            key = free_key(&link, &name, &id, &url).await?;
            link.run::<()>(redis::cmd("SET").arg(&key).arg(&url).arg("EX").arg(TTL_SECS)).await
        };
        let pause = match beat.await {
            Ok(()) => {
                if !std::mem::replace(&mut known, true) {
                    tracing::info!("registered again");
                }
                BEAT
            }
            Err(error) => {
                if std::mem::replace(&mut known, false) {
                    tracing::warn!(%error, "cannot register; going on and trying again");
                }
                LOOK
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    if let Err(error) = link.run::<()>(redis::cmd("DEL").arg(&key)).await {
        tracing::debug!(%error, "could not take the name out of the registry; it will run out");
    }
}

async fn free_key(link: &Link, name: &str, id: &str, url: &str) -> Result<String, RegistryError> {
    let plain = format!("{PREFIX}{name}");
    let holder: Option<String> = link.run(redis::cmd("GET").arg(&plain)).await?;
    Ok(match holder {
        Some(other) if other != url => format!("{plain}-{id}"),
        _ => plain,
    })
}
