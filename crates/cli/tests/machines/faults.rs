//! The faults, by name. Each says how long it took from the end of the fault (or, where it has no end, from the fault) until
//! everything was usable again.

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    balancer::{self, Balancer},
    cluster::{Cluster, PACE},
    collectors::Run,
};

pub(crate) type Recovered<'a> = Pin<Box<dyn Future<Output = Duration> + 'a>>;
pub(crate) type Fault = for<'a> fn(&'a mut Cluster) -> Recovered<'a>;

pub(crate) const ALL: &[(&str, Fault)] = &[
    ("node_partitioned_from_master", |cluster| Box::pin(node_partitioned_from_master(cluster))),
    ("node_partitioned_from_redis", |cluster| Box::pin(node_partitioned_from_redis(cluster))),
    ("redis_down_for_60s", |cluster| Box::pin(redis_down_for_60s(cluster))),
    ("master_restarted_mid_episode", |cluster| Box::pin(master_restarted_mid_episode(cluster))),
    ("node_changes_its_address", |cluster| Box::pin(node_changes_its_address(cluster))),
    ("rank_killed", |cluster| Box::pin(rank_killed(cluster))),
    ("slow_rank", |cluster| Box::pin(slow_rank(cluster))),
    ("two_masters", |cluster| Box::pin(two_masters(cluster))),
    ("rolling_restart", |cluster| Box::pin(rolling_restart(cluster))),
];

const TASKS: usize = 6;

/// A run through the first master, with episodes under way.
async fn under_way(cluster: &Cluster, tasks: usize) -> Run {
    let master = cluster.masters[0].host.ip.to_string();
    let run = Run::start(&cluster.collector_hosts, (&master, 7000), tasks).await;
    run.steps(2).await;
    cluster.busy(2).await;
    run
}

/// The node is there, but not for the master that everybody asks: its episodes are lost and begun afresh elsewhere.
async fn node_partitioned_from_master(cluster: &mut Cluster) -> Duration {
    let run = under_way(cluster, TASKS).await;
    cluster.nodes[0].host.disconnect(&cluster.masters[0].host);
    cluster.is_missed(0, 0).await;
    run.complete().await;
    cluster.nodes[0].host.reconnect(&cluster.masters[0].host);
    cluster.all_usable().await
}

/// Its entry runs out, but it answers: nobody drops it.
async fn node_partitioned_from_redis(cluster: &mut Cluster) -> Duration {
    let run = under_way(cluster, TASKS).await;
    let node = &cluster.nodes[1];
    node.host.disconnect(&cluster.redis_host);
    let gone = format!("http://{}:8080", node.host.ip);
    testkit::eventually("its entry has run out", crate::LIMIT, async || {
        !cluster.redis.registered_nodes().await.iter().any(|(_, url)| *url == gone)
    })
    .await;
    let lease = node.node().get().await;
    node.node().reset(&lease).await.ok();
    cluster.all_usable().await;
    run.complete().await;
    let node = &cluster.nodes[1];
    node.host.reconnect(&cluster.redis_host);
    let mended = Instant::now();
    testkit::eventually("it is registered again", crate::LIMIT, async || {
        cluster.redis.registered_nodes().await.iter().any(|(_, url)| *url == gone)
    })
    .await;
    mended.elapsed()
}

/// Sixty seconds of the registry's time, which passes faster here; what it held in memory is lost.
async fn redis_down_for_60s(cluster: &mut Cluster) -> Duration {
    let run = under_way(cluster, TASKS).await;
    cluster.redis.kill().await;
    let down = Duration::from_secs(60) / PACE;
    tokio::time::sleep(down).await;
    // Nothing depends on it for long: leases are given meanwhile.
    let master = cluster.masters[0].master();
    let lease = master.get().await;
    master.reset(&lease).await.ok();
    cluster.redis.restart().await;
    let back = Instant::now();
    testkit::eventually("all are registered again", crate::LIMIT, async || {
        cluster.redis.registered_nodes().await.len() == cluster.nodes.len()
    })
    .await;
    let recovered = back.elapsed();
    run.complete().await;
    recovered
}

/// The master is killed and comes back with nothing in its memory; episodes go on where they were.
async fn master_restarted_mid_episode(cluster: &mut Cluster) -> Duration {
    let run = under_way(cluster, TASKS).await;
    let killed = Instant::now();
    cluster.restart_master(0, Signal::KILL).await;
    cluster.all_usable().await;
    let recovered = killed.elapsed();
    run.complete().await;
    recovered
}

/// A machine gets another address: it is found there, under the old name, and nothing is left of the old one.
async fn node_changes_its_address(cluster: &mut Cluster) -> Duration {
    let names = |registered: Vec<(String, String)>| -> Vec<String> {
        registered.into_iter().map(|(name, _)| name).collect()
    };
    let before = names(cluster.redis.registered_nodes().await);
    let run = under_way(cluster, TASKS).await;
    let moved = Instant::now();
    cluster.nodes[2].host.change_address();
    cluster.all_usable().await;
    let recovered = moved.elapsed();
    run.complete().await;
    assert_eq!(names(cluster.redis.registered_nodes().await), before, "no ghost and no new name");
    recovered
}

async fn queued(cluster: &Cluster, slow_rank: bool) -> Run {
    let master = cluster.masters[0].host.ip.to_string();
    let redis = cluster.redis.url();
    Run::start_queued(&cluster.collector_hosts, (&master, 7000), 2 * TASKS, &redis, slow_rank).await
}

/// A collector dies with episodes under way: the other takes its tasks over, and the nodes its slots.
async fn rank_killed(cluster: &mut Cluster) -> Duration {
    let mut run = queued(cluster, false).await;
    testkit::eventually("the second rank has finished one", crate::LIMIT, async || run.collected_by(1) > 0)
        .await;
    cluster.busy(2).await;
    let killed = Instant::now();
    run.kill(1).await;
    run.complete().await;
    cluster.free().await;
    killed.elapsed()
}

/// A collector with a slow policy holds nobody up: the other does most of the work.
async fn slow_rank(cluster: &mut Cluster) -> Duration {
    let started = Instant::now();
    let run = queued(cluster, true).await;
    let share = testkit::poll_until("all tasks are collected", crate::LIMIT * 2, async || {
        let (quick, slow) = (run.collected_by(0), run.collected_by(1));
        (quick + slow >= 2 * TASKS).then_some((quick, slow))
    })
    .await;
    run.complete().await;
    assert!(share.0 > share.1, "{share:?}");
    started.elapsed()
}

/// Collectors ask both masters by turns, through nginx; one of them dies in the middle and comes back.
async fn two_masters(cluster: &mut Cluster) -> Duration {
    let balancer = Balancer::start(&cluster.masters).await;
    let at = balancer.host.ip.to_string();
    let run = Run::start(&cluster.collector_hosts, (&at, balancer::PORT), 2 * TASKS).await;
    run.steps(4).await;
    cluster.busy(2).await;
    let both = cluster.masters.iter().all(|one| {
        one.process.audit_log().iter().any(|entry| matches!(entry, testkit::AuditEntry::Given { .. }))
    });
    let killed = Instant::now();
    cluster.restart_master(1, Signal::KILL).await;
    cluster.all_usable().await;
    let recovered = killed.elapsed();
    run.complete().await;
    assert!(both, "both masters gave out leases");
    balancer.stop().await;
    recovered
}

/// Every node is told to go, finishes what it has, and comes back, one after the other, while tasks are collected.
async fn rolling_restart(cluster: &mut Cluster) -> Duration {
    let run = under_way(cluster, 3 * TASKS).await;
    let started = Instant::now();
    for place in 0..cluster.nodes.len() {
        cluster.restart_node(place, Signal::TERM).await;
        cluster.all_usable().await;
    }
    let recovered = started.elapsed();
    run.complete().await;
    recovered
}
