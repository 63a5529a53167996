//! The simulated hosts and the processes on them.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use testkit::{
    AUDIT_LOG_ENV, AuditEntry, AuditLog, Farm, Redis, Slots, Tier, Webgym, eventually, hosts::Host,
};

use crate::{LIMIT, WEBGYM};

pub(crate) const KEY: &str = "key-of-the-machines";
/// Factor by which registry times are shortened: entries live 6 s instead of 120.
pub(crate) const PACE: u32 = 20;
const MASTER_PORT: u16 = 7000;
const NODE_PORT: u16 = 8080;
const REDIS_PORT: u16 = 6379;

/// A host with its process.
pub(crate) struct Member {
    pub(crate) host: Host,
    pub(crate) process: Webgym,
    arguments: String,
}

impl Member {
    async fn start(host: Host, arguments: String) -> Self {
        let mut process = spawn(&host, &arguments);
        process.wait_for_event("ready").await;
        Self { host, process, arguments }
    }

    pub(crate) fn url(&self, port: u16) -> String {
        format!("http://{}:{port}", self.host.ip)
    }

    pub(crate) fn node(&self) -> Farm {
        Farm::with_key(Tier::Node, &self.url(NODE_PORT), KEY)
    }

    pub(crate) fn master(&self) -> Farm {
        Farm::with_key(Tier::Master, &self.url(MASTER_PORT), KEY)
    }
}

fn spawn(host: &Host, arguments: &str) -> Webgym {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    Webgym::spawn_on(&host.launcher(), WEBGYM, &arguments, &[AUDIT_LOG_ENV, ("WEBGYM_API_KEY", KEY)])
}

pub(crate) struct Cluster {
    pub(crate) redis: Redis,
    pub(crate) redis_host: Host,
    pub(crate) masters: Vec<Member>,
    pub(crate) nodes: Vec<Member>,
    pub(crate) collector_hosts: [Host; 2],
    /// The audit logs of processes that have exited.
    closed: AuditLog,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let redis_host = Host::new("redis");
        let redis = Redis::start_at(&redis_host.launcher(), redis_host.address(), REDIS_PORT).await;
        let common = format!("--host 0.0.0.0 --redis {} --registry-pace {PACE}", redis.url());
        let mut nodes = Vec::new();
        for name in ["node-a", "node-b", "node-c"] {
            // An unused lease expires after half a minute instead of an hour: a lease minute has half a second.
            let arguments = format!(
                "serve 1 --mode worker --node-port {NODE_PORT} --allow-private-network --lease-minute 0.5 {common}"
            );
            nodes.push(Member::start(Host::new(name), arguments).await);
        }
        let arguments = format!("serve --mode master --master-port {MASTER_PORT} {common}");
        let mut masters = Vec::new();
        for name in ["master-a", "master-b"] {
            masters.push(Member::start(Host::new(name), arguments.clone()).await);
        }
        let collector_hosts = [Host::new("collector-a"), Host::new("collector-b")];
        let cluster =
            Self { redis, redis_host, masters, nodes, collector_hosts, closed: AuditLog::default() };
        cluster.wait_until_usable().await;
        cluster
    }

    /// Returns what a master reports about its nodes.
    async fn nodes_seen_by(&self, master: usize) -> Vec<Value> {
        let info = self.masters[master].master().info().await;
        info["nodes"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until every master sees every node as healthy and returns how long that took.
    pub(crate) async fn wait_until_usable(&self) -> Duration {
        let started = Instant::now();
        for master in 0..self.masters.len() {
            let what = format!("master {master} sees all nodes as healthy");
            eventually(&what, LIMIT, async || {
                let nodes = self.nodes_seen_by(master).await;
                self.nodes.iter().all(|node| {
                    let url = node.url(NODE_PORT);
                    nodes.iter().any(|seen| seen["hash"] == url.as_str() && seen["healthy"] == true)
                }) && nodes.len() == self.nodes.len()
            })
            .await;
        }
        started.elapsed()
    }

    /// Waits until a master sees a node as unhealthy.
    pub(crate) async fn wait_until_unhealthy(&self, master: usize, node: usize) {
        let url = self.nodes[node].url(NODE_PORT);
        eventually("the master sees the node as unhealthy", LIMIT, async || {
            let nodes = self.nodes_seen_by(master).await;
            !nodes.iter().any(|seen| seen["hash"] == url.as_str() && seen["healthy"] == true)
        })
        .await;
    }

    pub(crate) async fn in_use(&self) -> usize {
        let mut total = 0;
        for node in &self.nodes {
            total += Slots::fetch(&node.node().http).await.in_use;
        }
        total
    }

    /// Waits until no lease is held.
    pub(crate) async fn wait_until_idle(&self) {
        eventually("all leases have ended", LIMIT, async || self.in_use().await == 0).await;
    }

    /// Waits until at least this many leases are held.
    pub(crate) async fn wait_for_leases(&self, leases: usize) {
        eventually("episodes are running", LIMIT, async || self.in_use().await >= leases).await;
    }

    pub(crate) async fn restart_node(&mut self, index: usize, signal: Signal) {
        let member = &mut self.nodes[index];
        let name = format!("{} (ended)", member.host.name);
        close(&mut member.process, signal, &name, &mut self.closed).await;
        member.process = spawn(&member.host, &member.arguments);
        member.process.wait_for_event("ready").await;
    }

    pub(crate) async fn restart_master(&mut self, index: usize, signal: Signal) {
        let member = &mut self.masters[index];
        let name = format!("{} (ended)", member.host.name);
        close(&mut member.process, signal, &name, &mut self.closed).await;
        member.process = spawn(&member.host, &member.arguments);
        member.process.wait_for_event("ready").await;
    }

    /// Checks that every slot is free, every node is known and the audit log is consistent. Returns the number of leases
    /// in the audit log.
    pub(crate) async fn assert_recovered(&self) -> usize {
        self.wait_until_usable().await;
        for node in &self.nodes {
            Slots::wait_all_free(&node.process, &node.node().http, LIMIT).await;
        }
        let mut violations = Vec::new();
        // The last lines may still be on their way from a process to us.
        let limit = Instant::now() + LIMIT;
        while Instant::now() < limit {
            let log = self.audit_log();
            violations = log.violations();
            if violations.is_empty() {
                return log.leases();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the audit log is not consistent: {violations:#?}");
    }

    fn audit_log(&self) -> AuditLog {
        let mut log = self.closed.clone();
        for member in self.nodes.iter().chain(&self.masters) {
            log.add(&member.host.name, member.process.audit_log());
        }
        log
    }

    pub(crate) async fn stop(mut self) {
        for member in self.nodes.iter_mut().chain(&mut self.masters) {
            close(&mut member.process, Signal::TERM, &member.host.name, &mut self.closed).await;
        }
        assert_eq!(self.closed.violations(), Vec::<String>::new());
    }
}

/// Ends a process and keeps its audit log.
async fn close(process: &mut Webgym, signal: Signal, name: &str, log: &mut AuditLog) {
    process.signal(signal);
    process.wait_for_exit(LIMIT).await;
    let entries: Vec<AuditEntry> = process.final_audit_log().await;
    log.add(name, entries);
}
