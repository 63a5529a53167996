//! A node's sign of life in the registry: its address under its name, renewed well before it runs out.

use std::time::{Duration, Instant};

use super::{Link, PREFIX, RegistryError};
use crate::tasks::Tasks;

const TTL_SECS: u64 = 120;
const BEAT: Duration = Duration::from_secs(30);
/// How often to look whether the entry is still there: a Redis that was restarted has forgotten it.
const LOOK: Duration = Duration::from_secs(5);
/// While Redis is away, look for it this often.
const LOOK_FOR_REDIS: Duration = Duration::from_secs(2);

/// Registers until stopped, then takes the name out again.
pub(crate) async fn heartbeat(link: Link, name: String, id: String, url: String, tasks: Tasks) {
    let stop = tasks.stopping().clone();
    let plain = format!("{PREFIX}{name}");
    let own = format!("{plain}-{id}");
    let mut known = true;
    let mut held: Option<(String, Instant)> = None;
    loop {
        let beaten = match &held {
            Some((key, at)) if at.elapsed() < BEAT => stands(&link, key, &url).await,
            _ => Ok(false),
        };
        let beaten = match beaten {
            Ok(true) => Ok(None),
            Ok(false) => beat(&link, &plain, &own, &url).await.map(Some),
            Err(error) => Err(error),
        };
        let pause = match beaten {
            Ok(key) => {
                if !std::mem::replace(&mut known, true) {
                    tracing::info!("registered again");
                }
                held = key.map(|key| (key.to_owned(), Instant::now())).or(held);
                LOOK
            }
            Err(error) => {
                if std::mem::replace(&mut known, false) {
                    tracing::warn!(%error, "cannot register; going on and trying again");
                }
                LOOK_FOR_REDIS
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    let Some((key, _)) = held else { return };
    if let Err(error) = link.run::<()>(redis::cmd("DEL").arg(&key).arg(&own)).await {
        tracing::debug!(%error, "could not take the name out of the registry; it will run out");
    }
}

async fn stands(link: &Link, key: &str, url: &str) -> Result<bool, RegistryError> {
    let entry: Option<String> = link.run(redis::cmd("GET").arg(key)).await?;
    Ok(entry.as_deref() == Some(url))
}

/// Says once that we are here: under the plain name, or if another node of that name has it, under one of our
/// own. Returns the key that was used.
async fn beat<'a>(link: &Link, plain: &'a str, own: &'a str, url: &str) -> Result<&'a str, RegistryError> {
    let mut claim = redis::cmd("SET");
    claim.arg(plain).arg(url).arg("NX").arg("EX").arg(TTL_SECS);
    let claimed: Option<String> = link.run(&claim).await?;
    if claimed.is_some() {
        return Ok(plain);
    }
    let holder: Option<String> = link.run(redis::cmd("GET").arg(plain)).await?;
    let key = if holder.is_some_and(|holder| holder != url) { own } else { plain };
    link.run::<()>(redis::cmd("SET").arg(key).arg(url).arg("EX").arg(TTL_SECS)).await?;
    Ok(key)
}
