//! The faults, each with a name, a victim and an end. A death ends at once (whoever looks after services starts it again);
//! everything else is taken back after a while. All choices come from the dice.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::json;
use testkit::{Browser, Dice, Lease, browsers_of, hosts::Host, signal};

use crate::{service::Service, world::World};

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

/// Makes the fault and takes it back; says to whom it was done. `None` when there was nobody to do it to.
pub(crate) async fn inject(kind: Kind, world: &World, dice: &mut Dice) -> Option<String> {
    let held = Duration::from_millis(1500 + dice.below(5000) as u64);
    // Every other time it is killed again as often as it comes back.
    let outage = held * (dice.below(2) as u32);
    let node = dice.below(world.nodes.len());
    match kind {
        Kind::BrowserKilled => {
            let browser = a_browser(world, dice)?;
            signal(browser.pid, Signal::KILL);
            Some(format!("process {}", browser.pid))
        }
        // Longer than the node waits for one that does not answer, every other time.
        Kind::BrowserFrozen => {
            let (browser, longer) =
                (a_browser(world, dice)?, Duration::from_secs(6) * (dice.below(2) as u32));
            freeze(browser.pid, held + longer).await;
            Some(format!("process {} for {:.1?}", browser.pid, held + longer))
        }
        Kind::RendererKilled => {
            let pid = a_renderer(world, dice)?;
            signal(pid, Signal::KILL);
            Some(format!("process {pid}"))
        }
        Kind::RendererFrozen => {
            let pid = a_renderer(world, dice)?;
            freeze(pid, held).await;
            Some(format!("process {pid} for {held:.1?}"))
        }
        Kind::NodeKilled => kill(&world.nodes[node], outage).await,
        // Longer than the collector waits for an operation, every other time.
        Kind::NodeFrozen => {
            freeze_service(&world.nodes[node], held + Duration::from_secs(6) * (dice.below(2) as u32)).await
        }
        Kind::MasterKilled => kill(&world.master, outage).await,
        Kind::MasterFrozen => freeze_service(&world.master, held).await,
        Kind::RedisKilled => kill(&world.redis, outage).await,
        Kind::RedisFrozen => freeze_service(&world.redis, held).await,
        Kind::PolicyKilled => kill(&world.policy, outage).await,
        Kind::PolicyFrozen => freeze_service(&world.policy, held).await,
        Kind::JudgeKilled => kill(&world.judge, outage).await,
        Kind::JudgeFrozen => freeze_service(&world.judge, held).await,
        Kind::CollectorKilled => kill(world.collector.as_ref()?, outage).await,
        Kind::CollectorFrozen => freeze_service(world.collector.as_ref()?, held).await,
        Kind::DiskFull => fill_disk(world, held).await,
        Kind::PacketsLost => {
            let host = a_host(world, dice);
            let percent = 10 + dice.below(25);
            host.lose(percent).unwrap_or_else(|error| panic!("packets cannot be lost: {error}"));
            tokio::time::sleep(held).await;
            host.calm();
            Some(format!("{percent} % to {} for {held:.1?}", host.name))
        }
        Kind::PacketsLate => {
            let host = a_host(world, dice);
            let how = host.delay().unwrap_or_else(|error| panic!("packets cannot be delayed: {error}"));
            tokio::time::sleep(held).await;
            host.calm();
            Some(format!("from {} for {held:.1?}: {how}", host.name))
        }
        Kind::DescriptorsExhausted => {
            let victims = [&world.nodes[0], &world.nodes[1], &world.master, world.collector.as_ref()?];
            exhaust_descriptors(dice.pick(&victims)?, held).await
        }
        Kind::MemoryExhausted => eat_memory(world).await,
    }
}

fn a_browser(world: &World, dice: &mut Dice) -> Option<Browser> {
    let all: Vec<Browser> = world.nodes.iter().filter_map(Service::pid).flat_map(browsers_of).collect();
    dice.pick(&all).cloned()
}

fn a_renderer(world: &World, dice: &mut Dice) -> Option<u32> {
    let all = a_browser(world, dice)?.renderers();
    dice.pick(&all).map(|one| one.pid)
}

fn a_host<'a>(world: &'a World, dice: &mut Dice) -> &'a Host {
    let hosts = &world.hosts;
    let all = [&hosts.collector, &hosts.master, &hosts.redis, &hosts.nodes[0], &hosts.nodes[1]];
    all[dice.below(all.len())]
}

async fn kill(service: &Service, outage: Duration) -> Option<String> {
    signal(service.pid()?, Signal::KILL);
    let begun = Instant::now();
    while begun.elapsed() < outage {
        service.signal(Signal::KILL);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let lasting = if outage.is_zero() { String::new() } else { format!(", out of order for {outage:.1?}") };
    Some(format!("{}{lasting}", service.name))
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

async fn fill_disk(world: &World, held: Duration) -> Option<String> {
    let path = world.disk.join("filler");
    let begun = Instant::now();
    let mut written = 0;
    let mut file = std::fs::File::create(&path).ok()?;
    let block = vec![0x5a_u8; 1 << 20];
    // Whatever is freed meanwhile is taken too, to the last byte.
    while begun.elapsed() < held {
        let size = if written % block.len() == 0 { block.len() } else { 512 };
        match file.write(&block[..size]) {
            Ok(count) if count > 0 => written += count,
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    drop(file);
    std::fs::remove_file(&path).expect("our own file");
    Some(format!("{} MiB written, for {held:.1?}", written >> 20))
}

/// No new descriptor for anybody in this process: what it has open it keeps.
async fn exhaust_descriptors(service: &Service, held: Duration) -> Option<String> {
    let pid = service.pid()?;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
    let whom = Pid::from_raw(pid.cast_signed());
    let most = rustix::process::getrlimit(Resource::Nofile).maximum;
    let own = prlimit(whom, Resource::Nofile, Rlimit { current: Some(3), maximum: most }).ok()?;
    tokio::time::sleep(held).await;
    // It may have died of it; then the next one has its own.
    let _ = prlimit(whom, Resource::Nofile, own);
    Some(format!("{} with {open} open, for {held:.1?}", service.name))
}

/// A stranger leases a browser and opens a page that takes memory until its renderer dies.
async fn eat_memory(world: &World) -> Option<String> {
    const PATIENCE: Duration = Duration::from_secs(25);
    let farm = world.master_farm();
    let eating = async {
        let wait = [("wait_secs", "10"), ("lifetime_mins", "50")];
        let got = farm.http.try_send(hyper::Method::POST, "/get", &wait, "", &[]).await.ok()?;
        if got.status != 200 {
            return None;
        }
        let lease = Lease::read(&got.json());
        let whom = [("instance_id", lease.id.as_str()), ("node", lease.node.as_str())];
        let body =
            json!({"instance_id": lease.id, "node": lease.node, "visit_page": {"url": World::eater()}});
        let kind = [("content-type", "application/json")];
        let mut told = String::from("no answer");
        let begun = Instant::now();
        let opened = farm.http.try_send(hyper::Method::POST, "/execute", &[], body.to_string(), &kind);
        let _ = tokio::time::timeout(PATIENCE, opened).await;
        while begun.elapsed() < PATIENCE {
            match farm.http.try_send(hyper::Method::GET, "/probe", &whom, "", &[]).await {
                Ok(reply) if reply.status == 200 => tokio::time::sleep(Duration::from_millis(300)).await,
                Ok(reply) => {
                    told = reply.code();
                    break;
                }
                Err(error) => told = error,
            }
        }
        let _ = farm.http.try_send(hyper::Method::POST, "/reset", &whom, "", &[]).await;
        Some(format!("a page in {}: {told} after {:.1?}", lease.node, begun.elapsed()))
    };
    tokio::time::timeout(PATIENCE * 2, eating).await.unwrap_or(None)
}
