//! A cluster of simulated hosts: two masters, three nodes, Redis and two collectors, each in its own network namespace that
//! the test connects and disconnects. After each fault every task has been collected exactly once, no slot is missing, and
//! the audit log is consistent.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

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

/// Generous, because browsers start slowly on two busy cores.
const LIMIT: Duration = Duration::from_secs(90);

/// The cluster is started once and shared; after a failed test, the next one starts a new cluster.
type SharedCluster = Arc<Mutex<Option<Cluster>>>;

fn trial(name: &'static str, fault: faults::Fault, shared: &SharedCluster, runtime: &Arc<Runtime>) -> Trial {
    let (shared, runtime) = (Arc::clone(shared), Arc::clone(runtime));
    Trial::test(name, move || {
        let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = slot.take();
        *slot = Some(runtime.block_on(async {
            let mut cluster = match cluster {
                Some(cluster) => cluster,
                None => Cluster::start().await,
            };
            let recovered = fault(&mut cluster).await;
            let leases = cluster.assert_recovered().await;
            println!("{name}: recovered in {recovered:.1?}; {leases} leases so far, audit log consistent");
            cluster
        }));
        Ok(())
    })
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The tests share their hosts.
    arguments.test_threads = Some(1);
    let listing = arguments.list;
    if !listing && let Err(reason) = hosts::enter_network_namespace() {
        eprintln!(
            "\nNOT TESTED: faults of several machines. This machine does not permit network namespaces: {reason}"
        );
        eprintln!(
            "Run as root, or allow unprivileged user namespaces, with iproute2 and util-linux installed.\n"
        );
        let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        let trials = faults::ALL.iter().map(|(name, _)| {
            let reason = reason.clone();
            Trial::test(*name, move || Err(reason.into())).with_ignored_flag(!is_ci)
        });
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let shared: SharedCluster = Arc::default();
    let trials = faults::ALL.iter().map(|(name, fault)| trial(name, *fault, &shared, &runtime)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let cluster = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(cluster) = cluster {
        runtime.block_on(cluster.stop());
    }
    conclusion.exit_code()
}
