//! Pages and clients that mean harm, named after what they try: a real farm, real Chromium, real connections. Most share
//! one farm, so that each is also the other's innocent neighbour; what aims at the farm as a whole has one of its own.

mod clients;
mod damage;
mod greed;
mod names;
mod network;
mod raw;
mod tricks;
mod watchers;
mod words;
mod world;

use std::{pin::Pin, process::ExitCode, sync::Arc, time::Duration};

use libtest_mimic::{Arguments, Trial};
use tokio::{runtime::Runtime, sync::OnceCell};

use world::World;

pub(crate) const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// For what takes moments on a machine that does nothing else.
pub(crate) const SECONDS: Duration = Duration::from_secs(60);

type Tried = Pin<Box<dyn Future<Output = ()>>>;
type Attack = (&'static str, fn(Arc<World>) -> Tried);

/// Lists attacks under their own names.
macro_rules! attacks {
    ($($name:ident),* $(,)?) => {
        pub(crate) const ATTACKS: &[crate::Attack] = &[$((stringify!($name), |world| Box::pin($name(world)))),*];
    };
}
pub(crate) use attacks;

const ROOMS: &[(&str, &[Attack])] = &[
    ("damage", damage::ATTACKS),
    ("greed", greed::ATTACKS),
    ("tricks", tricks::ATTACKS),
    ("words", words::ATTACKS),
    ("clients", clients::ATTACKS),
    ("raw", raw::ATTACKS),
    ("watchers", watchers::ATTACKS),
];

fn trial(
    room: &str,
    (name, attack): &'static Attack,
    runtime: &Arc<Runtime>,
    shared: &Arc<OnceCell<Arc<World>>>,
) -> Trial {
    let (runtime, shared) = (Arc::clone(runtime), Arc::clone(shared));
    Trial::test(format!("{room}::{name}"), move || {
        runtime.block_on(async {
            let world = Arc::clone(shared.get_or_init(World::start).await);
            attack(world).await;
        });
        Ok(())
    })
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if let Some(name) = network::inside() {
        return network::run(&name);
    }
    // They wait more than they work.
    arguments.test_threads.get_or_insert(6);
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let shared: Arc<OnceCell<Arc<World>>> = Arc::default();
    let mut trials = network::trials();
    for (room, attacks) in ROOMS {
        trials.extend(attacks.iter().map(|attack| trial(room, attack, &runtime, &shared)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(world) = Arc::into_inner(shared).and_then(OnceCell::into_inner) {
        runtime.block_on(World::stop(world, !conclusion.has_failed()));
    }
    conclusion.exit_code()
}
