//! Tells in Redis what the pool holds, in the sets existing scripts look at: `available` (slot numbers) and
//! `in_use` (instance ids). Only ever a report; the pool never reads it back.

use std::time::Duration;

use super::{RedisConnection, RegistryError};
use crate::{pool::Pool, tasks::Tasks};

const RETRY: Duration = Duration::from_secs(2);
/// Changes come in bursts; one report covers them.
const GATHER: Duration = Duration::from_millis(20);
/// A server that was restarted has forgotten the report, though nothing has changed here.
const REPEAT: Duration = Duration::from_secs(5);

/// Reports until stopped, then takes the report away: nothing is available here any more.
pub(crate) async fn mirror(link: RedisConnection, pool: Pool, tasks: Tasks) {
    tokio::select! {
        () = report_changes(&link, &pool) => {}
        () = tasks.stopping().cancelled() => {}
    }
    if let Err(error) = report(&link, &[], &[]).await {
        tracing::debug!(%error, "the pool's mirror in Redis could not be taken away");
    }
}

async fn report_changes(link: &RedisConnection, pool: &Pool) {
    let mut changes = pool.changes();
    let mut said = false;
    loop {
        changes.mark_unchanged();
        let in_use: Vec<String> = pool.in_use().iter().map(ToString::to_string).collect();
        match report(link, &pool.available_ports(), &in_use).await {
            Ok(()) => {
                said = false;
                match tokio::time::timeout(REPEAT, changes.changed()).await {
                    Ok(Err(_)) => return,
                    Ok(Ok(())) => tokio::time::sleep(GATHER).await,
                    Err(_) => {}
                }
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

async fn report(link: &RedisConnection, available: &[u16], in_use: &[String]) -> Result<(), RegistryError> {
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
