//! The faults, by name. Each returns the recovery time: from the end of the fault (or its start if it has no end) until
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
    ("episodes_of_unreachable_node_are_retried", |cluster| {
        Box::pin(episodes_of_unreachable_node_are_retried(cluster))
    }),
    ("node_without_redis_stays_in_use", |cluster| Box::pin(node_without_redis_stays_in_use(cluster))),
    ("run_survives_redis_outage", |cluster| Box::pin(run_survives_redis_outage(cluster))),
    ("master_restart_loses_no_episode", |cluster| Box::pin(master_restart_loses_no_episode(cluster))),
    ("node_with_new_address_is_found", |cluster| Box::pin(node_with_new_address_is_found(cluster))),
    ("tasks_of_killed_rank_are_taken_over", |cluster| Box::pin(tasks_of_killed_rank_are_taken_over(cluster))),
    ("slow_rank_delays_no_other", |cluster| Box::pin(slow_rank_delays_no_other(cluster))),
    ("run_continues_when_one_of_two_masters_dies", |cluster| {
        Box::pin(run_continues_when_one_of_two_masters_dies(cluster))
    }),
    ("rolling_restart_loses_nothing", |cluster| Box::pin(rolling_restart_loses_nothing(cluster))),
];

const TASKS: usize = 6;

/// Starts a run through the first master and waits until episodes are running.
async fn start_run(cluster: &Cluster, tasks: usize) -> Run {
    let master = cluster.masters[0].host.ip.to_string();
    let run = Run::start(&cluster.collector_hosts, (&master, 7000), tasks).await;
    run.wait_for_steps(2).await;
    cluster.wait_for_leases(2).await;
    run
}

/// The master that all collectors use cannot reach the node: its episodes are lost and restarted on other nodes.
async fn episodes_of_unreachable_node_are_retried(cluster: &mut Cluster) -> Duration {
    let run = start_run(cluster, TASKS).await;
    cluster.nodes[0].host.disconnect(&cluster.masters[0].host);
    cluster.wait_until_unhealthy(0, 0).await;
    run.assert_complete().await;
    cluster.nodes[0].host.reconnect(&cluster.masters[0].host);
    cluster.wait_until_usable().await
}

/// The registry entry of the node expires, but the node responds and stays in use.
async fn node_without_redis_stays_in_use(cluster: &mut Cluster) -> Duration {
    let run = start_run(cluster, TASKS).await;
    let node = &cluster.nodes[1];
    node.host.disconnect(&cluster.redis_host);
    let url = format!("http://{}:8080", node.host.ip);
    testkit::eventually("its entry has expired", crate::LIMIT, async || {
        !cluster.redis.registered_nodes().await.iter().any(|(_, registered)| *registered == url)
    })
    .await;
    let lease = node.node().get().await;
    node.node().reset(&lease).await.ok();
    cluster.wait_until_usable().await;
    run.assert_complete().await;
    let node = &cluster.nodes[1];
    node.host.reconnect(&cluster.redis_host);
    let reconnected = Instant::now();
    testkit::eventually("it is registered again", crate::LIMIT, async || {
        cluster.redis.registered_nodes().await.iter().any(|(_, registered)| *registered == url)
    })
    .await;
    reconnected.elapsed()
}

/// Redis is down for sixty (shortened) seconds and loses its data.
async fn run_survives_redis_outage(cluster: &mut Cluster) -> Duration {
    let run = start_run(cluster, TASKS).await;
    cluster.redis.kill().await;
    let down = Duration::from_secs(60) / PACE;
    tokio::time::sleep(down).await;
    // Leases are still granted meanwhile.
    let master = cluster.masters[0].master();
    let lease = master.get().await;
    master.reset(&lease).await.ok();
    cluster.redis.restart().await;
    let restarted = Instant::now();
    testkit::eventually("all nodes are registered again", crate::LIMIT, async || {
        cluster.redis.registered_nodes().await.len() == cluster.nodes.len()
    })
    .await;
    let recovered = restarted.elapsed();
    run.assert_complete().await;
    recovered
}

/// The master is killed and restarted without its state; running episodes continue.
async fn master_restart_loses_no_episode(cluster: &mut Cluster) -> Duration {
    let run = start_run(cluster, TASKS).await;
    let killed = Instant::now();
    cluster.restart_master(0, Signal::KILL).await;
    cluster.wait_until_usable().await;
    let recovered = killed.elapsed();
    run.assert_complete().await;
    recovered
}

/// A machine gets another address: the node is found there under its old name, and the old address is removed.
async fn node_with_new_address_is_found(cluster: &mut Cluster) -> Duration {
    let names = |registered: Vec<(String, String)>| -> Vec<String> {
        registered.into_iter().map(|(name, _)| name).collect()
    };
    let before = names(cluster.redis.registered_nodes().await);
    let run = start_run(cluster, TASKS).await;
    let moved = Instant::now();
    cluster.nodes[2].host.change_address();
    cluster.wait_until_usable().await;
    let recovered = moved.elapsed();
    run.assert_complete().await;
    assert_eq!(
        names(cluster.redis.registered_nodes().await),
        before,
        "the names in the registry are unchanged"
    );
    recovered
}

async fn start_queued_run(cluster: &Cluster, slow_rank: bool) -> Run {
    let master = cluster.masters[0].host.ip.to_string();
    let redis = cluster.redis.url();
    Run::start_queued(&cluster.collector_hosts, (&master, 7000), 2 * TASKS, &redis, slow_rank).await
}

/// A collector is killed during episodes: the other one takes over its tasks, and its leases expire.
async fn tasks_of_killed_rank_are_taken_over(cluster: &mut Cluster) -> Duration {
    let mut run = start_queued_run(cluster, false).await;
    testkit::eventually("the second rank has finished a trajectory", crate::LIMIT, async || {
        run.collected_by(1) > 0
    })
    .await;
    cluster.wait_for_leases(2).await;
    let killed = Instant::now();
    run.kill(1).await;
    run.assert_complete().await;
    cluster.wait_until_idle().await;
    killed.elapsed()
}

/// A collector with a slow policy does not delay the run: the other one does most of the work.
async fn slow_rank_delays_no_other(cluster: &mut Cluster) -> Duration {
    let started = Instant::now();
    let run = start_queued_run(cluster, true).await;
    let share = testkit::poll_until("all tasks are collected", crate::LIMIT * 2, async || {
        let (quick, slow) = (run.collected_by(0), run.collected_by(1));
        (quick + slow >= 2 * TASKS).then_some((quick, slow))
    })
    .await;
    run.assert_complete().await;
    assert!(share.0 > share.1, "{share:?}");
    started.elapsed()
}

/// Collectors use both masters in turn, through nginx; one master is killed during the run and restarted.
async fn run_continues_when_one_of_two_masters_dies(cluster: &mut Cluster) -> Duration {
    let balancer = Balancer::start(&cluster.masters).await;
    let address = balancer.host.ip.to_string();
    let run = Run::start(&cluster.collector_hosts, (&address, balancer::PORT), 2 * TASKS).await;
    run.wait_for_steps(4).await;
    cluster.wait_for_leases(2).await;
    testkit::eventually("both masters have granted leases", crate::LIMIT, async || {
        cluster.masters.iter().all(|master| {
            let log = master.process.audit_log();
            log.iter().any(|entry| matches!(entry, testkit::AuditEntry::Given { .. }))
        })
    })
    .await;
    let killed = Instant::now();
    cluster.restart_master(1, Signal::KILL).await;
    cluster.wait_until_usable().await;
    let recovered = killed.elapsed();
    run.assert_complete().await;
    balancer.stop().await;
    recovered
}

/// Every node in turn gets SIGTERM, finishes its leases and is restarted while tasks are collected.
async fn rolling_restart_loses_nothing(cluster: &mut Cluster) -> Duration {
    let run = start_run(cluster, 3 * TASKS).await;
    let started = Instant::now();
    for index in 0..cluster.nodes.len() {
        cluster.restart_node(index, Signal::TERM).await;
        cluster.wait_until_usable().await;
    }
    let recovered = started.elapsed();
    run.assert_complete().await;
    recovered
}
