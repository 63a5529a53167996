//! Tells in Redis what the pool holds, in the sets existing scripts look at: `available` (slot numbers) and
//! `in_use` (instance ids). Only ever a report; the pool never reads it back.

use std::time::Duration;

use super::Link;
use crate::pool::Pool;

const RETRY: Duration = Duration::from_secs(2);
/// Changes come in bursts; one report covers them.
const GATHER: Duration = Duration::from_millis(20);

pub(crate) async fn mirror(link: Link, pool: Pool) {
    let mut changes = pool.changes();
    let mut said = true;
    loop {
        changes.mark_unchanged();
        match report(&link, &pool).await {
            Ok(()) => {
                said = false;
                if changes.changed().await.is_err() {
                    return;
                }
                tokio::time::sleep(GATHER).await;
            }
            Err(error) => {
                if !std::mem::replace(&mut said, true) {
                    tracing::warn!(%error, "the pool's mirror in Redis is out of date; trying again");
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn report(link: &Link, pool: &Pool) -> Result<(), super::RegistryError> {
    let available: Vec<u16> = pool.available_ports();
    let in_use: Vec<String> = pool.in_use().iter().map(ToString::to_string).collect();
    let mut commands = redis::pipe();
    commands.atomic().cmd("DEL").arg("available").arg("in_use").ignore();
    if !available.is_empty() {
        commands.cmd("SADD").arg("available").arg(available).ignore();
    }
    if !in_use.is_empty() {
        commands.cmd("SADD").arg("in_use").arg(in_use).ignore();
    }
    link.run_all::<()>(&commands).await
}
