//! The topologies of a farm. Each is started when the first check needs it, shared by all its checks, and stopped at
//! the end, which must leave no browser behind.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use practice::Sites;
use testkit::{Browser, Farm, Redis, Webgym, eventually};
use tokio::sync::OnceCell;

use crate::Context;

pub(crate) const NAMES: [&str; 5] =
    ["one_process", "node_alone", "master_and_node", "two_nodes_and_redis", "single_instance"];

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

pub(crate) struct Topologies {
    sites: OnceCell<Arc<Sites>>,
    started: [OnceCell<Topology>; NAMES.len()],
}

struct Topology {
    front: Farm,
    processes: Vec<Webgym>,
    _redis: Option<Redis>,
}

impl Topologies {
    pub(crate) fn new() -> Self {
        Self { sites: OnceCell::new(), started: [const { OnceCell::const_new() }; NAMES.len()] }
    }

    pub(crate) async fn context(&self, name: &str) -> Context {
        let sites = self.sites.get_or_init(async || {
            Arc::new(Sites::start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("the practice sites start"))
        });
        let sites = Arc::clone(sites.await);
        let index = NAMES.iter().position(|known| *known == name).expect("a known topology");
        let topology = self.started[index].get_or_init(|| Topology::start(name)).await;
        Context { farm: topology.front.clone(), sites }
    }

    pub(crate) async fn stop(self) {
        for topology in self.started.into_iter().filter_map(OnceCell::into_inner) {
            topology.stop().await;
        }
    }
}

const ALLOW_TEST_PAGES: [&str; 1] = ["--allow-private-network"];

async fn start(command: &str, arguments: &[&str]) -> Webgym {
    let arguments: Vec<&str> = command.split_whitespace().chain(arguments.iter().copied()).collect();
    Webgym::start(WEBGYM, &arguments).await
}

impl Topology {
    async fn start(name: &str) -> Self {
        match name {
            "one_process" => Self::one_process(false).await,
            "node_alone" => Self::one_process(true).await,
            "master_and_node" => Self::master_and_node().await,
            "two_nodes_and_redis" => Self::two_nodes_and_redis().await,
            "single_instance" => Self::single_instance().await,
            other => panic!("unknown topology {other}"),
        }
    }

    async fn one_process(through_node: bool) -> Self {
        let webgym = start("serve 3 --master-port 0 --node-port 0", &ALLOW_TEST_PAGES).await;
        let front = if through_node { webgym.node() } else { webgym.master() };
        Self { front, processes: vec![webgym], _redis: None }
    }

    async fn master_and_node() -> Self {
        let node = start("node 2 --port 0", &ALLOW_TEST_PAGES).await;
        let master = start("master --port 0 --node", &[&node.url("node")]).await;
        Self { front: master.master(), processes: vec![master, node], _redis: None }
    }

    async fn two_nodes_and_redis() -> Self {
        let redis = Redis::start().await;
        let url = redis.url();
        let arguments = [ALLOW_TEST_PAGES[0], "--redis", &url];
        let first = start("node 1 --port 0", &arguments).await;
        let second = start("node 1 --port 0 --no-mirror", &arguments).await;
        let master = start("master --port 0 --redis", &[&url]).await;
        let front = master.master();
        eventually("the master has found both nodes", Duration::from_secs(60), async || {
            front.info().await["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)
        })
        .await;
        Self { front, processes: vec![master, first, second], _redis: Some(redis) }
    }

    async fn single_instance() -> Self {
        let webgym = start("instance --port 0", &ALLOW_TEST_PAGES).await;
        Self { front: webgym.instance(), processes: vec![webgym], _redis: None }
    }

    async fn stop(self) {
        let browsers: Vec<Browser> = self.processes.iter().flat_map(Webgym::browsers).collect();
        for process in self.processes {
            process.stop().await;
        }
        for browser in browsers {
            assert!(browser.is_gone(), "{browser:?} outlived its farm");
        }
    }
}
