//! Reports the state of the pool in Redis, in the sets that existing scripts read: `available` (slot numbers) and `in_use`
//! (instance ids). The pool never reads them back.

use std::time::Duration;

use super::{RedisConnection, RegistryError};
use crate::{pool::Pool, tasks::Tasks};

const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Changes come in bursts; one report after this delay covers them.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// The report is repeated without a change, because a restarted server may have lost it.
const REPEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Reports until stopped, then removes the report.
pub(crate) async fn mirror(connection: RedisConnection, pool: Pool, tasks: Tasks) {
    tokio::select! {
        () = report_changes(&connection, &pool) => {}
        () = tasks.stopping().cancelled() => {}
    }
    if let Err(error) = report(&connection, &[], &[]).await {
        tracing::debug!(%error, "cannot remove the report of this pool from Redis");
    }
}

async fn report_changes(connection: &RedisConnection, pool: &Pool) {
    let mut changes = pool.changes();
    let mut warned = false;
    loop {
        changes.mark_unchanged();
        let in_use: Vec<String> = pool.in_use().iter().map(ToString::to_string).collect();
        match report(connection, &pool.available_ports(), &in_use).await {
            Ok(()) => {
                warned = false;
                match tokio::time::timeout(REPEAT_INTERVAL, changes.changed()).await {
                    Ok(Err(_)) => return,
                    Ok(Ok(())) => tokio::time::sleep(BATCH_DELAY).await,
                    Err(_) => {}
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(%error, "cannot update the report of this pool in Redis; trying again");
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

async fn report(
    connection: &RedisConnection,
    available: &[u16],
    in_use: &[String],
) -> Result<(), RegistryError> {
    let mut commands = redis::pipe();
    commands.atomic().cmd("DEL").arg("available").arg("in_use").ignore();
    if !available.is_empty() {
        commands.cmd("SADD").arg("available").arg(available).ignore();
    }
    if !in_use.is_empty() {
        commands.cmd("SADD").arg("in_use").arg(in_use).ignore();
    }
    connection.run_all::<()>(&commands).await
}
