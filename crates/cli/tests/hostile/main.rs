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

/// They take all there is: two at a time, or they would harm each other more than any innocent.
const ROUGH: &[(&str, &[Attack])] = &[("damage", damage::ATTACKS), ("greed", greed::ATTACKS)];

/// They wait more than they work.
const SLY: &[(&str, &[Attack])] = &[
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
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let shared: Arc<OnceCell<Arc<World>>> = Arc::default();
    let told = arguments.test_threads;
    let mut failed = false;
    for (rooms, at_once) in [(SLY, 6), (ROUGH, 2)] {
        arguments.test_threads = told.or(Some(at_once));
        let mut trials = if at_once == 6 { network::trials() } else { Vec::new() };
        for (room, attacks) in rooms {
            trials.extend(attacks.iter().map(|attack| trial(room, attack, &runtime, &shared)));
        }
        failed |= libtest_mimic::run(&arguments, trials).has_failed();
    }
    if let Some(world) = Arc::into_inner(shared).and_then(OnceCell::into_inner) {
        runtime.block_on(World::stop(world, !failed));
    }
    ExitCode::from(u8::from(failed) * 101)
}
