//! One suite, every topology: the contract of REFERENCE §1 and §2, checked through a master, a node and a lone
//! instance, all in one process and apart, with and without Redis. Real processes, real browsers, real pages.

mod commands;
mod input;
mod leases;
mod looking;
mod open;
mod topology;

use std::{pin::Pin, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use practice::Sites;
use testkit::{Farm, Tier};
use tokio::runtime::Runtime;

use topology::{NAMES, Topologies};

/// What a check is given: a farm to speak to, and pages to visit.
pub struct World {
    pub farm: Farm,
    pub sites: Arc<Sites>,
}

impl World {
    pub fn page(&self, path: &str) -> String {
        self.sites.url(path)
    }

    pub fn is(&self, tier: Tier) -> bool {
        self.farm.tier == tier
    }
}

type Checked = Pin<Box<dyn Future<Output = ()> + Send>>;
type Check = (&'static str, fn(World) -> Checked);

/// Lists checks under their own names.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CHECKS: &[crate::Check] = &[$((stringify!($name), |world| Box::pin($name(world)))),*];
    };
}
pub(crate) use checks;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let topologies = Arc::new(Topologies::new());
    let mut trials = Vec::new();
    for topology in NAMES {
        let groups = [leases::CHECKS, looking::CHECKS, commands::CHECKS, input::CHECKS, open::CHECKS];
        for (name, check) in groups.into_iter().flatten() {
            let (runtime, topologies) = (Arc::clone(&runtime), Arc::clone(&topologies));
            trials.push(Trial::test(format!("{topology}::{name}"), move || {
                runtime.block_on(async {
                    let world = topologies.world(topology).await;
                    check(world).await;
                });
                Ok(())
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let topologies = Arc::into_inner(topologies).expect("the trials are over");
    runtime.block_on(topologies.stop());
    conclusion.exit_code()
}
