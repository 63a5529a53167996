//! The contract suite ("Tiers and HTTP API" and "Browser commands" in `docs/contract.md`), run on every topology:
//! through a master, a node and a single instance, in one process and in several, with and without Redis. Real
//! processes, real browsers, real pages.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod cdp;
mod commands;
mod computer;
mod invalid_requests;
mod leases;
mod live;
mod observation;
mod recording;
mod self_description;
mod sessions;
mod topology;

use std::{pin::Pin, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use practice::Sites;
use testkit::{Farm, Tier};
use tokio::runtime::Runtime;

use topology::{NAMES, Topologies};

/// What every check gets: a farm to call and pages to visit.
pub struct Context {
    pub farm: Farm,
    pub sites: Arc<Sites>,
}

impl Context {
    pub fn page(&self, path: &str) -> String {
        self.sites.url(path)
    }

    pub fn is_tier(&self, tier: Tier) -> bool {
        self.farm.tier == tier
    }
}

type CheckFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
type Check = (&'static str, fn(Context) -> CheckFuture);

/// Lists checks under their own names.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CHECKS: &[crate::Check] = &[$((stringify!($name), |context| Box::pin($name(context)))),*];
    };
}
pub(crate) use checks;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let topologies = Arc::new(Topologies::new());
    let mut trials = Vec::new();
    for topology in NAMES {
        let groups = [
            leases::CHECKS,
            observation::CHECKS,
            commands::CHECKS,
            computer::CHECKS,
            invalid_requests::CHECKS,
            self_description::CHECKS,
            sessions::CHECKS,
            cdp::CHECKS,
            live::CHECKS,
            recording::CHECKS,
        ];
        for (name, check) in groups.into_iter().flatten() {
            let (runtime, topologies) = (Arc::clone(&runtime), Arc::clone(&topologies));
            trials.push(Trial::test(format!("{topology}::{name}"), move || {
                runtime.block_on(async {
                    let context = topologies.context(topology).await;
                    check(context).await;
                });
                Ok(())
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let topologies = Arc::into_inner(topologies).expect("all trials have ended");
    runtime.block_on(topologies.stop());
    conclusion.exit_code()
}
