//! Everything that runs: Redis, a master and two nodes, a collector, each on a host of its own; the practice sites, a
//! policy and a judge beside them. The collector works on a small disk, run after run.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::{
    Farm, Http, Slots, Tier, browsers_of,
    hosts::{Host, TEST_HOST},
};

use crate::service::{Recipe, Service};

const KEY: &str = "key-of-the-chaos";
/// Slots a node; the collector uses one fewer than there are, so that a stranger finds one too.
pub(crate) const SLOTS: usize = 3;
const DISK_MIB: u64 = 1024;
const SITES: u16 = 9100;
const POLICY: u16 = 9200;
const JUDGE: u16 = 9300;
/// How long an outside look may take.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) struct World {
    pub(crate) folder: PathBuf,
    /// The small disk with all that the collector saves.
    pub(crate) disk: PathBuf,
    pub(crate) hosts: Hosts,
    pub(crate) redis: Service,
    pub(crate) master: Service,
    pub(crate) nodes: [Service; 2],
    pub(crate) policy: Service,
    pub(crate) judge: Service,
    pub(crate) collector: Option<Service>,
    sites: Service,
    webgym: String,
    pub(crate) tasks: usize,
}

pub(crate) struct Hosts {
    pub(crate) redis: Host,
    pub(crate) master: Host,
    pub(crate) nodes: [Host; 2],
    pub(crate) collector: Host,
}

impl World {
    pub(crate) async fn start(webgym: &str) -> Self {
        let folder = PathBuf::from("/tmp/chaos");
        let disk = folder.join("disk");
        std::fs::create_dir_all(&disk).expect("our own /tmp");
        let size = format!("size={DISK_MIB}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&disk).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a small disk can be mounted");
        let hosts = Hosts {
            redis: Host::new("redis"),
            master: Host::new("master"),
            nodes: [Host::new("node-a"), Host::new("node-b")],
            collector: Host::new("collector"),
        };
        let redis_url = format!("redis://{}:6379", hosts.redis.ip);
        let common = format!("--host 0.0.0.0 --redis {redis_url}");
        let node = |place: usize, name: &'static str| {
            let words = format!(
                "serve {SLOTS} --mode worker --node-port 8080 --node-id {name} --instances-per-browser 2 \
                 --allow-private-network --hang-limit 6 --lease-minute 0.4 --drain-secs 5 {common}"
            );
            started(&folder, name, Some(&hosts.nodes[place]), webgym, &words)
        };
        let redis = "--save  --appendonly no --protected-mode no --dir /tmp/chaos --bind";
        let redis = format!("{redis} {} --port 6379", hosts.redis.ip);
        let own = std::env::current_exe().expect("our own name").display().to_string();
        let part = |name: &'static str, port: u16| {
            started(
                &folder,
                name,
                None,
                &own,
                &format!("--part {name} --at {}", SocketAddr::new(TEST_HOST.into(), port)),
            )
        };
        let mut world = Self {
            redis: started(&folder, "redis", Some(&hosts.redis), "redis-server", &redis),
            master: started(
                &folder,
                "master",
                Some(&hosts.master),
                webgym,
                &format!("serve --mode master {common}"),
            ),
            nodes: [node(0, "node-a"), node(1, "node-b")],
            policy: part("policy", POLICY),
            judge: part("judge", JUDGE),
            sites: part("sites", SITES),
            collector: None,
            webgym: webgym.to_owned(),
            tasks: 0,
            folder,
            disk,
            hosts,
        };
        world.wait_until_whole(Duration::from_secs(90)).await;
        world.tasks = crate::tasks::write(&world.folder, &Self::sites_url("/")).await;
        world
    }

    fn sites_url(path: &str) -> String {
        format!("http://{TEST_HOST}:{SITES}{path}")
    }

    /// The address of the page that eats memory.
    pub(crate) fn eater() -> String {
        format!("http://{TEST_HOST}:{}/eater", SITES + 1)
    }

    /// The words that configure a run which saves under this name.
    fn run_words(&self, name: &str) -> Vec<String> {
        let judge = format!("http://{TEST_HOST}:{JUDGE}/v1");
        let mut words = vec![
            format!("save_path={}", self.disk.join(name).display()),
            format!("data_path={}", self.folder.display()),
            format!("env_config.host_ip={}", self.hosts.master.ip),
            format!("env_config.vllm_server_url=http://{TEST_HOST}:{POLICY}"),
            format!("env_config.server_size={}", 2 * SLOTS - 1),
            format!("openai_config.base_url={judge}"),
        ];
        words.extend(RUN.split_whitespace().map(str::to_owned));
        words
    }

    fn variables() -> Vec<(&'static str, String)> {
        vec![("CPU_CLUSTER_TOKEN", KEY.to_owned()), ("OPENAI_API_KEY", "key-of-the-judge".to_owned())]
    }

    /// Starts to collect, run after run, under this name.
    pub(crate) fn collect(&mut self, name: &str) {
        let mut words = self.hosts.collector.launcher();
        words.extend([self.webgym.clone(), "rollout".into(), "--resume".into(), "--stall-secs=20".into()]);
        words.extend(self.run_words(name));
        let folder = self.folder.clone();
        let recipe = Recipe { name: "collector", words, variables: Self::variables(), folder };
        self.collector = Some(Service::start(recipe));
    }

    /// Has everything judged that the judge could not be reached for, as a user would.
    pub(crate) async fn judge_again(&self, name: &str) -> String {
        let mut command = tokio::process::Command::new(&self.webgym);
        command.arg("judge").arg(self.disk.join(name)).arg("--only-unjudged");
        command.args(self.run_words(name)).envs(Self::variables()).env("TMPDIR", &self.sites.temporary);
        let output = command.kill_on_drop(true).output();
        match tokio::time::timeout(Duration::from_mins(1), output).await {
            Ok(Ok(output)) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
            Ok(Ok(output)) => format!("failed: {}", String::from_utf8_lossy(&output.stderr)),
            Ok(Err(error)) => format!("failed: {error}"),
            Err(_) => "failed: not within 60 s".to_owned(),
        }
    }

    pub(crate) fn services(&self) -> Vec<&Service> {
        let [a, b] = &self.nodes;
        let fixed = [&self.redis, &self.master, a, b, &self.policy, &self.judge, &self.sites];
        fixed.into_iter().chain(&self.collector).collect()
    }

    pub(crate) fn master_farm(&self) -> Farm {
        Farm::with_key(Tier::Master, &format!("http://{}:7000", self.hosts.master.ip), KEY)
    }

    pub(crate) fn node_urls(&self) -> Vec<String> {
        self.hosts.nodes.iter().map(|host| format!("http://{}:8080", host.ip)).collect()
    }

    /// Both nodes are known to the master and well, every slot of theirs is usable, and nobody is missing. The collector
    /// ends and begins all the time; what it finishes shows whether it is there.
    pub(crate) async fn is_whole(&self) -> Result<(), String> {
        let collects = |one: &Service| one.name == "collector";
        if let Some(down) = self.services().iter().find(|one| one.pid().is_none() && !collects(one)) {
            return Err(format!("{} is not running", down.name));
        }
        for (url, node) in self.node_urls().iter().zip(&self.nodes) {
            let slots = slots_of(url).await?;
            let browsers = node.pid().map_or(0, |pid| browsers_of(pid).len());
            if slots.available + slots.in_use != SLOTS || slots.browsers != browsers {
                return Err(format!("{url} has {browsers} browsers and says {slots:?}"));
            }
        }
        let told = look(&self.master_farm().http, "/info").await?;
        let told: Value = serde_json::from_str(&told).map_err(|error| format!("{error}: {told}"))?;
        let nodes = told["nodes"].as_array().cloned().unwrap_or_default();
        let well = |node: &&Value| node["healthy"] == true && node["capacity"] == json!(SLOTS);
        match nodes.iter().filter(well).count() {
            2 => Ok(()),
            _ => Err(format!("the master says {told}")),
        }
    }

    pub(crate) async fn wait_until_whole(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while let Err(why) = self.is_whole().await {
            assert!(Instant::now() < end, "not whole after {limit:?}: {why}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Ends everything in the order in which nobody misses anybody; says who would not.
    pub(crate) async fn stop(&mut self) -> Vec<&'static str> {
        let mut stuck = Vec::new();
        if let Some(collector) = &mut self.collector {
            stuck.extend((!collector.stop().await).then_some("collector"));
        }
        let [a, b] = &mut self.nodes;
        let all =
            [a, b, &mut self.master, &mut self.redis, &mut self.policy, &mut self.judge, &mut self.sites];
        for service in all {
            stuck.extend((!service.stop().await).then_some(service.name));
        }
        stuck
    }
}

const RUN: &str = "--config-name=rollout_test env_config.test_tasks=tasks.jsonl env_config.test_tasks_rollout_size=0 \
    env_config.test_tasks_repeat_times=1 env_config.master_port=7000 env_config.operation_timeout=8 \
    env_config.vllm_timeout=10 env_config.max_retries=3 env_config.max_infra_retries=30 env_config.instance_lifetime_max=50 \
    env_config.task_timeout_minutes=4 env_config.completion_threshold=1 env_config.monitor_port=null \
    context_config.interaction_mode=set_of_marks policy_config.base_model=sim judge=openai";

/// A program as a service, on a host or beside us.
fn started(folder: &Path, name: &'static str, host: Option<&Host>, program: &str, words: &str) -> Service {
    let mut all = host.map(Host::launcher).unwrap_or_default();
    all.push(program.to_owned());
    all.extend(words.split(' ').map(str::to_owned));
    let variables = vec![("WEBGYM_API_KEY", KEY.to_owned())];
    Service::start(Recipe { name, words: all, variables, folder: folder.to_owned() })
}

/// A look from outside, bounded.
pub(crate) async fn look(http: &Http, path: &str) -> Result<String, String> {
    let asked = http.try_send(hyper::Method::GET, path, &[], "", &[]);
    match tokio::time::timeout(LOOK, asked).await {
        Ok(Ok(reply)) if reply.status == 200 => Ok(reply.text()),
        Ok(Ok(reply)) => Err(format!("{path}: {} {}", reply.status, reply.text())),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(format!("{path}: nothing for {LOOK:?}")),
    }
}

pub(crate) async fn slots_of(url: &str) -> Result<Slots, String> {
    let text = look(&Http::new(url, Some(KEY)), "/metrics").await?;
    Slots::try_read(&text).map_err(|name| format!("{url} does not say {name}"))
}
