//! The faults: each has a name, a target and an end. Killed services are restarted by their supervisor; every other
//! fault is reverted after a while. All random choices come from the seeded generator.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::json;
use testkit::{Browser, Lease, Rng, browsers_of, hosts::Host, signal};

use crate::{service::Service, system::System};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    BrowserKilled,
    BrowserFrozen,
    RendererKilled,
    RendererFrozen,
    NodeKilled,
    NodeFrozen,
    MasterKilled,
    MasterFrozen,
    RedisKilled,
    RedisFrozen,
    PolicyKilled,
    PolicyFrozen,
    JudgeKilled,
    JudgeFrozen,
    CollectorKilled,
    CollectorFrozen,
    DiskFull,
    PacketsLost,
    PacketsLate,
    DescriptorsExhausted,
    MemoryExhausted,
}

pub(crate) const KINDS: &[Kind] = &[
    Kind::BrowserKilled,
    Kind::BrowserFrozen,
    Kind::RendererKilled,
    Kind::RendererFrozen,
    Kind::NodeKilled,
    Kind::NodeFrozen,
    Kind::MasterKilled,
    Kind::MasterFrozen,
    Kind::RedisKilled,
    Kind::RedisFrozen,
    Kind::PolicyKilled,
    Kind::PolicyFrozen,
    Kind::JudgeKilled,
    Kind::JudgeFrozen,
    Kind::CollectorKilled,
    Kind::CollectorFrozen,
    Kind::DiskFull,
    Kind::PacketsLost,
    Kind::PacketsLate,
    Kind::DescriptorsExhausted,
    Kind::MemoryExhausted,
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BrowserKilled => "browser killed",
            Self::BrowserFrozen => "browser frozen",
            Self::RendererKilled => "renderer killed",
            Self::RendererFrozen => "renderer frozen",
            Self::NodeKilled => "node killed",
            Self::NodeFrozen => "node frozen",
            Self::MasterKilled => "master killed",
            Self::MasterFrozen => "master frozen",
            Self::RedisKilled => "Redis killed",
            Self::RedisFrozen => "Redis frozen",
            Self::PolicyKilled => "model server killed",
            Self::PolicyFrozen => "model server frozen",
            Self::JudgeKilled => "judge killed",
            Self::JudgeFrozen => "judge frozen",
            Self::CollectorKilled => "collector killed",
            Self::CollectorFrozen => "collector frozen",
            Self::DiskFull => "disk full",
            Self::PacketsLost => "packets lost",
            Self::PacketsLate => "packets late",
            Self::DescriptorsExhausted => "file descriptors exhausted",
            Self::MemoryExhausted => "memory exhausted",
        }
    }
}

/// Injects a fault, reverts it and returns a description of its target, or `None` if there was no target.
pub(crate) async fn inject(kind: Kind, system: &System, rng: &mut Rng) -> Option<String> {
    let held = Duration::from_millis(1500 + rng.below(5000) as u64);
    // In half of the cases the service is killed again whenever it restarts.
    let outage = held * (rng.below(2) as u32);
    let node = rng.below(system.nodes.len());
    match kind {
        Kind::BrowserKilled => {
            let browser = pick_browser(system, rng)?;
            signal(browser.pid, Signal::KILL);
            Some(format!("process {}", browser.pid))
        }
        // In half of the cases longer than the node waits for a browser that does not respond.
        Kind::BrowserFrozen => {
            let (browser, longer) =
                (pick_browser(system, rng)?, Duration::from_secs(6) * (rng.below(2) as u32));
            freeze(browser.pid, held + longer).await;
            Some(format!("process {} for {:.1?}", browser.pid, held + longer))
        }
        Kind::RendererKilled => {
            let pid = pick_renderer(system, rng)?;
            signal(pid, Signal::KILL);
            Some(format!("process {pid}"))
        }
        Kind::RendererFrozen => {
            let pid = pick_renderer(system, rng)?;
            freeze(pid, held).await;
            Some(format!("process {pid} for {held:.1?}"))
        }
        Kind::NodeKilled => kill(&system.nodes[node], outage).await,
        // In half of the cases longer than the collector waits for an operation.
        Kind::NodeFrozen => {
            freeze_service(&system.nodes[node], held + Duration::from_secs(6) * (rng.below(2) as u32)).await
        }
        Kind::MasterKilled => kill(&system.master, outage).await,
        Kind::MasterFrozen => freeze_service(&system.master, held).await,
        Kind::RedisKilled => kill(&system.redis, outage).await,
        Kind::RedisFrozen => freeze_service(&system.redis, held).await,
        Kind::PolicyKilled => kill(&system.policy, outage).await,
        Kind::PolicyFrozen => freeze_service(&system.policy, held).await,
        Kind::JudgeKilled => kill(&system.judge, outage).await,
        Kind::JudgeFrozen => freeze_service(&system.judge, held).await,
        Kind::CollectorKilled => kill(system.collector.as_ref()?, outage).await,
        Kind::CollectorFrozen => freeze_service(system.collector.as_ref()?, held).await,
        Kind::DiskFull => fill_disk(system, held).await,
        Kind::PacketsLost => {
            let host = pick_host(system, rng);
            let percent = 10 + rng.below(25);
            host.drop_packets(percent).unwrap_or_else(|error| panic!("cannot drop packets: {error}"));
            tokio::time::sleep(held).await;
            host.restore_packets();
            Some(format!("{percent} % to {} for {held:.1?}", host.name))
        }
        Kind::PacketsLate => {
            let host = pick_host(system, rng);
            let how = host.delay_packets().unwrap_or_else(|error| panic!("cannot delay packets: {error}"));
            tokio::time::sleep(held).await;
            host.restore_packets();
            Some(format!("from {} for {held:.1?}: {how}", host.name))
        }
        Kind::DescriptorsExhausted => {
            let victims = [&system.nodes[0], &system.nodes[1], &system.master, system.collector.as_ref()?];
            exhaust_descriptors(rng.pick(&victims)?, held).await
        }
        Kind::MemoryExhausted => exhaust_memory(system).await,
    }
}

fn pick_browser(system: &System, rng: &mut Rng) -> Option<Browser> {
    let all: Vec<Browser> = system.nodes.iter().filter_map(Service::pid).flat_map(browsers_of).collect();
    rng.pick(&all).cloned()
}

fn pick_renderer(system: &System, rng: &mut Rng) -> Option<u32> {
    let all = pick_browser(system, rng)?.renderers();
    rng.pick(&all).map(|one| one.pid)
}

fn pick_host<'a>(system: &'a System, rng: &mut Rng) -> &'a Host {
    let hosts = &system.hosts;
    let all = [&hosts.collector, &hosts.master, &hosts.redis, &hosts.nodes[0], &hosts.nodes[1]];
    all[rng.below(all.len())]
}

async fn kill(service: &Service, outage: Duration) -> Option<String> {
    signal(service.pid()?, Signal::KILL);
    let begun = Instant::now();
    while begun.elapsed() < outage {
        service.signal(Signal::KILL);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let suffix = if outage.is_zero() { String::new() } else { format!(", kept down for {outage:.1?}") };
    Some(format!("{}{suffix}", service.name))
}

async fn freeze(pid: u32, held: Duration) {
    signal(pid, Signal::STOP);
    tokio::time::sleep(held).await;
    signal(pid, Signal::CONT);
}

async fn freeze_service(service: &Service, held: Duration) -> Option<String> {
    freeze(service.pid()?, held).await;
    Some(format!("{} for {held:.1?}", service.name))
}

async fn fill_disk(system: &System, held: Duration) -> Option<String> {
    let path = system.disk.join("filler");
    let begun = Instant::now();
    let mut written = 0;
    let mut file = std::fs::File::create(&path).ok()?;
    let block = vec![0x5a_u8; 1 << 20];
    // Space that is freed meanwhile is filled again, to the last byte.
    while begun.elapsed() < held {
        let size = if written % block.len() == 0 { block.len() } else { 512 };
        match file.write(&block[..size]) {
            Ok(count) if count > 0 => written += count,
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    drop(file);
    std::fs::remove_file(&path).expect("the filler can be removed");
    Some(format!("{} MiB written, for {held:.1?}", written >> 20))
}

/// Lowers the descriptor limit of a process so that it cannot open new ones; open descriptors stay valid.
async fn exhaust_descriptors(service: &Service, held: Duration) -> Option<String> {
    let pid = service.pid()?;
    let open = procfs::process::Process::new(pid.cast_signed()).ok()?.fd_count().ok()?;
    let target = Pid::from_raw(pid.cast_signed());
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let previous = prlimit(target, Resource::Nofile, Rlimit { current: Some(3), maximum }).ok()?;
    tokio::time::sleep(held).await;
    // The process may have exited; its successor has its own limit.
    let _ = prlimit(target, Resource::Nofile, previous);
    Some(format!("{} with {open} open, for {held:.1?}", service.name))
}

/// Leases a browser as another client and opens a page that allocates memory until its renderer dies.
async fn exhaust_memory(system: &System) -> Option<String> {
    const CRASH_TIMEOUT: Duration = Duration::from_secs(25);
    let farm = system.master_farm();
    let crash = async {
        let wait = [("wait_secs", "10"), ("lifetime_mins", "50")];
        let got = farm.http.try_send(hyper::Method::POST, "/get", &wait, "", &[]).await.ok()?;
        if got.status != 200 {
            return None;
        }
        let lease = Lease::parse(&got.json());
        let target = [("instance_id", lease.id.as_str()), ("node", lease.node.as_str())];
        let body = json!({"instance_id": lease.id, "node": lease.node, "visit_page": {"url": System::memory_hog_url()}});
        let kind = [("content-type", "application/json")];
        let mut result = String::from("no response");
        let begun = Instant::now();
        let opened = farm.http.try_send(hyper::Method::POST, "/execute", &[], body.to_string(), &kind);
        let _ = tokio::time::timeout(CRASH_TIMEOUT, opened).await;
        while begun.elapsed() < CRASH_TIMEOUT {
            match farm.http.try_send(hyper::Method::GET, "/probe", &target, "", &[]).await {
                Ok(reply) if reply.status == 200 => tokio::time::sleep(Duration::from_millis(300)).await,
                Ok(reply) => {
                    result = reply.code();
                    break;
                }
                Err(error) => result = error,
            }
        }
        let _ = farm.http.try_send(hyper::Method::POST, "/reset", &target, "", &[]).await;
        Some(format!("a page in {}: {result} after {:.1?}", lease.node, begun.elapsed()))
    };
    tokio::time::timeout(CRASH_TIMEOUT * 2, crash).await.unwrap_or(None)
}
