//! The system under test: Redis, a master, two nodes and a collector, each on its own simulated host, plus the practice
//! sites, a policy and a judge. The collector saves run after run to a small disk.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::{
    Farm, Http, Slots, Tier,
    arguments::exit,
    browsers_of,
    hosts::{Host, TEST_HOST},
};

use crate::{
    evidence::entries,
    service::{Service, ServiceSpec},
};

const API_KEY: &str = "key-of-the-chaos";
/// The collector uses one slot fewer than there are, so that another client finds one too.
pub(crate) const SLOTS_PER_NODE: usize = 3;
const FOLDER: &str = "/tmp/webgym-chaos";
const DISK_MIB: u64 = 1024;
const SITES_PORT: u16 = 9100;
const POLICY_PORT: u16 = 9200;
const JUDGE_PORT: u16 = 9300;
/// Timeout of a health check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct System {
    pub(crate) folder: PathBuf,
    /// The entries of `/tmp` that are not ours, such as a clone in which this program was built.
    pub(crate) existing: Vec<PathBuf>,
    /// The small disk to which the collector saves.
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

impl System {
    pub(crate) async fn start(webgym: &str) -> Self {
        let existing = entries("/tmp".as_ref());
        let folder = PathBuf::from(FOLDER);
        if existing.contains(&folder) {
            exit(&format!("{FOLDER} is reserved for this test; move the clone, --webgym or --out elsewhere"));
        }
        let disk = folder.join("disk");
        std::fs::create_dir_all(&disk).expect("a writable /tmp");
        let size = format!("size={DISK_MIB}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&disk).status();
        assert!(mounted.is_ok_and(|status| status.success()), "cannot mount a small disk");
        let hosts = Hosts {
            redis: Host::new("redis"),
            master: Host::new("master"),
            nodes: [Host::new("node-a"), Host::new("node-b")],
            collector: Host::new("collector"),
        };
        let redis_url = format!("redis://{}:6379", hosts.redis.ip);
        let common = format!("--host 0.0.0.0 --redis {redis_url}");
        let node = |index: usize, name: &'static str| {
            let arguments = format!(
                "serve {SLOTS_PER_NODE} --mode worker --node-port 8080 --node-id {name} --instances-per-browser 2 \
                 --allow-private-network --hang-limit 6 --lease-minute 0.4 --drain-secs 5 {common}"
            );
            start_service(&folder, name, Some(&hosts.nodes[index]), webgym, &arguments)
        };
        let redis = format!(
            "--save  --appendonly no --protected-mode no --dir {FOLDER} --bind {} --port 6379",
            hosts.redis.ip
        );
        let own = std::env::current_exe().expect("the path of this program").display().to_string();
        let role = |name: &'static str, port: u16| {
            start_service(
                &folder,
                name,
                None,
                &own,
                &format!("--part {name} --at {}", SocketAddr::new(TEST_HOST.into(), port)),
            )
        };
        let mut system = Self {
            redis: start_service(&folder, "redis", Some(&hosts.redis), "redis-server", &redis),
            master: start_service(
                &folder,
                "master",
                Some(&hosts.master),
                webgym,
                &format!("serve --mode master {common}"),
            ),
            nodes: [node(0, "node-a"), node(1, "node-b")],
            policy: role("policy", POLICY_PORT),
            judge: role("judge", JUDGE_PORT),
            sites: role("sites", SITES_PORT),
            collector: None,
            webgym: webgym.to_owned(),
            tasks: 0,
            folder,
            existing,
            disk,
            hosts,
        };
        system.wait_until_healthy(Duration::from_secs(90)).await;
        system.tasks = crate::tasks::write(&system.folder, &Self::sites_url("/")).await;
        system
    }

    fn sites_url(path: &str) -> String {
        format!("http://{TEST_HOST}:{SITES_PORT}{path}")
    }

    /// Returns the URL of the page that allocates memory until its renderer crashes.
    pub(crate) fn memory_hog_url() -> String {
        format!("http://{TEST_HOST}:{}/memory-hog", SITES_PORT + 1)
    }

    /// Returns the configuration overrides for a run that saves under this name.
    fn run_arguments(&self, name: &str) -> Vec<String> {
        let judge = format!("http://{TEST_HOST}:{JUDGE_PORT}/v1");
        let mut arguments = vec![
            format!("save_path={}", self.disk.join(name).display()),
            format!("data_path={}", self.folder.display()),
            format!("env_config.host_ip={}", self.hosts.master.ip),
            format!("env_config.vllm_server_url=http://{TEST_HOST}:{POLICY_PORT}"),
            format!("env_config.server_size={}", 2 * SLOTS_PER_NODE - 1),
            format!("openai_config.base_url={judge}"),
        ];
        arguments.extend(RUN_OVERRIDES.split_whitespace().map(str::to_owned));
        arguments
    }

    fn variables() -> Vec<(&'static str, String)> {
        vec![("CPU_CLUSTER_TOKEN", API_KEY.to_owned()), ("OPENAI_API_KEY", "key-of-the-judge".to_owned())]
    }

    /// Starts a collector that saves run after run under this name.
    pub(crate) fn collect(&mut self, name: &str) {
        let mut command = self.hosts.collector.launcher();
        command.extend([self.webgym.clone(), "rollout".into(), "--resume".into(), "--stall-secs=20".into()]);
        command.extend(self.run_arguments(name));
        let folder = self.folder.clone();
        let spec = ServiceSpec { name: "collector", command, variables: Self::variables(), folder };
        self.collector = Some(Service::start(spec));
    }

    /// Judges the trajectories for which the judge was unreachable, as a user would.
    pub(crate) async fn judge_again(&self, name: &str) -> String {
        let mut command = tokio::process::Command::new(&self.webgym);
        command.arg("judge").arg(self.disk.join(name)).arg("--only-unjudged");
        command.args(self.run_arguments(name)).envs(Self::variables()).env("TMPDIR", &self.sites.temporary);
        let output = command.kill_on_drop(true).output();
        match tokio::time::timeout(Duration::from_mins(1), output).await {
            Ok(Ok(output)) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
            Ok(Ok(output)) => format!("failed: {}", String::from_utf8_lossy(&output.stderr)),
            Ok(Err(error)) => format!("failed: {error}"),
            Err(_) => "failed: not finished within 60 s".to_owned(),
        }
    }

    pub(crate) fn services(&self) -> Vec<&Service> {
        let [a, b] = &self.nodes;
        let fixed = [&self.redis, &self.master, a, b, &self.policy, &self.judge, &self.sites];
        fixed.into_iter().chain(&self.collector).collect()
    }

    pub(crate) fn master_farm(&self) -> Farm {
        Farm::with_key(Tier::Master, &format!("http://{}:7000", self.hosts.master.ip), API_KEY)
    }

    pub(crate) fn node_urls(&self) -> Vec<String> {
        self.hosts.nodes.iter().map(|host| format!("http://{}:8080", host.ip)).collect()
    }

    /// Checks that all services run, that the master sees both nodes as healthy, and that every slot is usable. The
    /// collector is not checked because it restarts all the time; its progress is checked instead.
    pub(crate) async fn check_healthy(&self) -> Result<(), String> {
        let is_collector = |service: &Service| service.name == "collector";
        let services = self.services();
        if let Some(down) = services.iter().find(|service| service.pid().is_none() && !is_collector(service))
        {
            return Err(format!("{} is not running", down.name));
        }
        for (url, node) in self.node_urls().iter().zip(&self.nodes) {
            let slots = slots_of(url).await?;
            let browsers = node.pid().map_or(0, |pid| browsers_of(pid).len());
            if slots.available + slots.in_use != SLOTS_PER_NODE || slots.browsers != browsers {
                return Err(format!("{url} has {browsers} browsers and reports {slots:?}"));
            }
        }
        let text = fetch(&self.master_farm().http, "/info").await?;
        let info: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        let nodes = info["nodes"].as_array().cloned().unwrap_or_default();
        let healthy = |node: &&Value| node["healthy"] == true && node["capacity"] == json!(SLOTS_PER_NODE);
        match nodes.iter().filter(healthy).count() {
            2 => Ok(()),
            _ => Err(format!("the master reports {info}")),
        }
    }

    pub(crate) async fn wait_until_healthy(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while let Err(reason) = self.check_healthy().await {
            assert!(Instant::now() < end, "not healthy after {limit:?}: {reason}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Stops all services, clients before the servers they use. Returns those that did not stop.
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

const RUN_OVERRIDES: &str = "--config-name=rollout_test env_config.test_tasks=tasks.jsonl env_config.test_tasks_rollout_size=0 \
    env_config.test_tasks_repeat_times=1 env_config.master_port=7000 env_config.operation_timeout=8 \
    env_config.vllm_timeout=10 env_config.max_retries=3 env_config.max_infra_retries=30 env_config.instance_lifetime_max=50 \
    env_config.task_timeout_minutes=4 env_config.completion_threshold=1 env_config.monitor_port=null \
    context_config.interaction_mode=set_of_marks policy_config.base_model=sim judge=openai";

/// Starts a program as a service, on a simulated host or on ours.
fn start_service(
    folder: &Path,
    name: &'static str,
    host: Option<&Host>,
    program: &str,
    arguments: &str,
) -> Service {
    let mut command = host.map(Host::launcher).unwrap_or_default();
    command.push(program.to_owned());
    command.extend(arguments.split(' ').map(str::to_owned));
    let variables = vec![("WEBGYM_API_KEY", API_KEY.to_owned())];
    Service::start(ServiceSpec { name, command, variables, folder: folder.to_owned() })
}

/// Sends a GET request with a timeout and returns the body.
pub(crate) async fn fetch(http: &Http, path: &str) -> Result<String, String> {
    let request = http.try_send(hyper::Method::GET, path, &[], "", &[]);
    match tokio::time::timeout(CHECK_TIMEOUT, request).await {
        Ok(Ok(reply)) if reply.status == 200 => Ok(reply.text()),
        Ok(Ok(reply)) => Err(format!("{path}: {} {}", reply.status, reply.text())),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(format!("{path}: no response within {CHECK_TIMEOUT:?}")),
    }
}

pub(crate) async fn slots_of(url: &str) -> Result<Slots, String> {
    let text = fetch(&Http::new(url, Some(API_KEY)), "/metrics").await?;
    Slots::try_parse(&text).map_err(|name| format!("{url} does not export {name}"))
}
