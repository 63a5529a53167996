//! Hostile pages and clients against a real farm with real Chromium and real connections. Most attacks share one farm, so
//! that each also checks that its neighbours are not affected; attacks on the farm as a whole start their own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod cdp;
mod clients;
mod denial_of_service;
mod dns_server;
mod environment;
mod isolation;
mod network;
mod raw_http;
mod resource_exhaustion;
mod sessions;
mod text_injection;
mod viewer;

use std::{pin::Pin, process::ExitCode, sync::Arc, time::Duration};

use libtest_mimic::{Arguments, Trial};
use tokio::{runtime::Runtime, sync::OnceCell};

use environment::Environment;

pub(crate) const WEBGYM: &str = env!("CARGO_BIN_EXE_webgym");

/// Limit for what takes moments on an idle machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

type AttackFuture = Pin<Box<dyn Future<Output = ()>>>;
type Attack = (&'static str, fn(Arc<Environment>) -> AttackFuture);

/// Lists attacks under their own names.
macro_rules! attacks {
    ($($name:ident),* $(,)?) => {
        pub(crate) const ATTACKS: &[crate::Attack] = &[$((stringify!($name), |env| Box::pin($name(env)))),*];
    };
}
pub(crate) use attacks;

/// Attacks that use all resources: two at a time, because more would only disturb each other.
const HEAVY: &[(&str, &[Attack])] = &[
    ("denial_of_service", denial_of_service::ATTACKS),
    ("resource_exhaustion", resource_exhaustion::ATTACKS),
];

/// Attacks that mostly wait.
const LIGHT: &[(&str, &[Attack])] = &[
    ("isolation", isolation::ATTACKS),
    ("cdp", cdp::ATTACKS),
    ("text_injection", text_injection::ATTACKS),
    ("sessions", sessions::ATTACKS),
    ("clients", clients::ATTACKS),
    ("raw_http", raw_http::ATTACKS),
    ("viewer", viewer::ATTACKS),
];

fn trial(
    module: &str,
    (name, attack): &'static Attack,
    runtime: &Arc<Runtime>,
    shared: &Arc<OnceCell<Arc<Environment>>>,
) -> Trial {
    let (runtime, shared) = (Arc::clone(runtime), Arc::clone(shared));
    Trial::test(format!("{module}::{name}"), move || {
        runtime.block_on(async {
            let env = Arc::clone(shared.get_or_init(Environment::start).await);
            attack(env).await;
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
    let shared: Arc<OnceCell<Arc<Environment>>> = Arc::default();
    let requested_threads = arguments.test_threads;
    let mut failed = false;
    for (modules, threads) in [(LIGHT, 6), (HEAVY, 2)] {
        arguments.test_threads = requested_threads.or(Some(threads));
        let mut trials = if threads == 6 { network::trials() } else { Vec::new() };
        for (module, attacks) in modules {
            trials.extend(attacks.iter().map(|attack| trial(module, attack, &runtime, &shared)));
        }
        failed |= libtest_mimic::run(&arguments, trials).has_failed();
    }
    if let Some(env) = Arc::into_inner(shared).and_then(OnceCell::into_inner) {
        runtime.block_on(Environment::stop(env, !failed));
    }
    ExitCode::from(u8::from(failed) * 101)
}
