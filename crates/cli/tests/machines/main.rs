//! Several machines on one: a master or two, three nodes, Redis and two collectors, each on a host of its own in a network
//! that this test makes, cuts and mends. Tests are named after faults; after each, every task has been collected exactly
//! once, no slot is missing, and the farm's books are in order.

mod balancer;
mod cluster;
mod collectors;
mod faults;

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use libtest_mimic::{Arguments, Trial};
use testkit::hosts;
use tokio::runtime::Runtime;

use cluster::Cluster;

const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// Browsers on two busy cores take their time.
const LIMIT: Duration = Duration::from_secs(90);

/// The hosts are started once; each fault leaves them whole, and one that does not leaves the next to start afresh.
type Shared = Arc<Mutex<Option<Cluster>>>;

fn trial(name: &'static str, fault: faults::Fault, shared: &Shared, runtime: &Arc<Runtime>) -> Trial {
    let (shared, runtime) = (Arc::clone(shared), Arc::clone(runtime));
    Trial::test(name, move || {
        let mut held = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = held.take();
        *held = Some(runtime.block_on(async {
            let mut cluster = match cluster {
                Some(cluster) => cluster,
                None => Cluster::start().await,
            };
            let recovered = fault(&mut cluster).await;
            let leases = cluster.is_whole().await;
            println!("{name}: recovered in {recovered:.1?}; {leases} leases so far, books in order");
            cluster
        }));
        Ok(())
    })
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share their hosts.
    arguments.test_threads = Some(1);
    let listing = arguments.list;
    if !listing && let Err(why) = hosts::enter_network_namespace() {
        eprintln!("\nNOT TESTED: several machines. This machine does not permit network namespaces: {why}");
        eprintln!(
            "Run as root, or allow unprivileged user namespaces, with iproute2 and util-linux installed.\n"
        );
        let refused = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        let trials = faults::ALL.iter().map(|(name, _)| {
            let why = why.clone();
            Trial::test(*name, move || Err(why.into())).with_ignored_flag(!refused)
        });
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let shared: Shared = Arc::default();
    let trials = faults::ALL.iter().map(|(name, fault)| trial(name, *fault, &shared, &runtime)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let cluster = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(cluster) = cluster {
        runtime.block_on(cluster.stop());
    }
    conclusion.exit_code()
}
