//! The hosts and what runs on them.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use testkit::{
    AUDIT_LOG_ENV, AuditEntry, AuditLog, Farm, Redis, Slots, Tier, Webgym, eventually, hosts::Host,
};

use crate::{LIMIT, WEBGYM};

pub(crate) const KEY: &str = "key-of-the-machines";
/// How much faster the registry's times pass: entries live 6 s instead of 120.
pub(crate) const PACE: u32 = 20;
const MASTER_PORT: u16 = 7000;
const NODE_PORT: u16 = 8080;
const REDIS_PORT: u16 = 6379;

/// A host and its process.
pub(crate) struct Member {
    pub(crate) host: Host,
    pub(crate) process: Webgym,
    words: String,
}

impl Member {
    async fn start(host: Host, words: String) -> Self {
        let mut process = spawn(&host, &words);
        process.wait_for_event("ready").await;
        Self { host, process, words }
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

fn spawn(host: &Host, words: &str) -> Webgym {
    let words: Vec<&str> = words.split_whitespace().collect();
    Webgym::spawn_on(&host.launcher(), WEBGYM, &words, &[AUDIT_LOG_ENV, ("WEBGYM_API_KEY", KEY)])
}

pub(crate) struct Cluster {
    pub(crate) redis: Redis,
    pub(crate) redis_host: Host,
    pub(crate) masters: Vec<Member>,
    pub(crate) nodes: Vec<Member>,
    pub(crate) collector_hosts: [Host; 2],
    /// The books of processes that have ended.
    closed: AuditLog,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let redis_host = Host::new("redis");
        let redis = Redis::start_at(&redis_host.launcher(), redis_host.address(), REDIS_PORT).await;
        let common = format!("--host 0.0.0.0 --redis {} --registry-pace {PACE}", redis.url());
        let mut nodes = Vec::new();
        for name in ["node-a", "node-b", "node-c"] {
            // A lease that nobody uses is over after half a minute, not after an hour: half a second a minute.
            let words = format!(
                "serve 1 --mode worker --node-port {NODE_PORT} --allow-private-network --lease-minute 0.5 {common}"
            );
            nodes.push(Member::start(Host::new(name), words).await);
        }
        let words = format!("serve --mode master --master-port {MASTER_PORT} {common}");
        let mut masters = Vec::new();
        for name in ["master-a", "master-b"] {
            masters.push(Member::start(Host::new(name), words.clone()).await);
        }
        let collector_hosts = [Host::new("collector-a"), Host::new("collector-b")];
        let cluster =
            Self { redis, redis_host, masters, nodes, collector_hosts, closed: AuditLog::default() };
        cluster.all_usable().await;
        cluster
    }

    /// What a master says of the nodes.
    async fn told(&self, master: usize) -> Vec<Value> {
        let info = self.masters[master].master().info().await;
        info["nodes"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until every master knows every node, and says how long that took.
    pub(crate) async fn all_usable(&self) -> Duration {
        let started = Instant::now();
        for master in 0..self.masters.len() {
            let what = format!("master {master} knows all nodes and all are well");
            eventually(&what, LIMIT, async || {
                let told = self.told(master).await;
                self.nodes.iter().all(|node| {
                    let url = node.url(NODE_PORT);
                    told.iter().any(|one| one["hash"] == url.as_str() && one["healthy"] == true)
                }) && told.len() == self.nodes.len()
            })
            .await;
        }
        started.elapsed()
    }

    /// Waits until a master takes a node for lost.
    pub(crate) async fn is_missed(&self, master: usize, node: usize) {
        let url = self.nodes[node].url(NODE_PORT);
        eventually("the master misses it", LIMIT, async || {
            let told = self.told(master).await;
            !told.iter().any(|one| one["hash"] == url.as_str() && one["healthy"] == true)
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
    pub(crate) async fn free(&self) {
        eventually("all leases are over", LIMIT, async || self.in_use().await == 0).await;
    }

    /// Waits until so many leases are held.
    pub(crate) async fn busy(&self, leases: usize) {
        eventually("episodes are under way", LIMIT, async || self.in_use().await >= leases).await;
    }

    pub(crate) async fn restart_node(&mut self, place: usize, signal: Signal) {
        let member = &mut self.nodes[place];
        let name = format!("{} (ended)", member.host.name);
        close(&mut member.process, signal, &name, &mut self.closed).await;
        member.process = spawn(&member.host, &member.words);
        member.process.wait_for_event("ready").await;
    }

    pub(crate) async fn restart_master(&mut self, place: usize, signal: Signal) {
        let member = &mut self.masters[place];
        let name = format!("{} (ended)", member.host.name);
        close(&mut member.process, signal, &name, &mut self.closed).await;
        member.process = spawn(&member.host, &member.words);
        member.process.wait_for_event("ready").await;
    }

    /// Every slot is free again, every node is known, and the books of all processes are in order; how many leases they
    /// hold.
    pub(crate) async fn is_whole(&self) -> usize {
        self.all_usable().await;
        for node in &self.nodes {
            Slots::wait_all_free(&node.process, &node.node().http, LIMIT).await;
        }
        let mut history = self.closed.clone();
        for member in self.nodes.iter().chain(&self.masters) {
            history.add(&member.host.name, member.process.audit_log());
        }
        // A line may still be on its way from a process to us.
        let mut wrong = history.violations();
        for _ in 0..20 {
            if wrong.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            history = self.closed.clone();
            for member in self.nodes.iter().chain(&self.masters) {
                history.add(&member.host.name, member.process.audit_log());
            }
            wrong = history.violations();
        }
        assert!(wrong.is_empty(), "the books are not in order: {wrong:#?}");
        history.leases()
    }

    pub(crate) async fn stop(mut self) {
        for member in self.nodes.iter_mut().chain(&mut self.masters) {
            close(&mut member.process, Signal::TERM, &member.host.name, &mut self.closed).await;
        }
        assert_eq!(self.closed.violations(), Vec::<String>::new());
    }
}

/// Ends a process and keeps its books.
async fn close(process: &mut Webgym, signal: Signal, name: &str, books: &mut AuditLog) {
    process.signal(signal);
    process.wait_for_exit(LIMIT).await;
    let entries: Vec<AuditEntry> = process.final_audit_log().await;
    books.add(name, entries);
}
