//! The browser, the sites and the runtime that all tests of one binary stand on. They live as long as the
//! binary; the browser's guard cleans up after it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::LazyLock,
    time::Duration,
};

use browser::{BrowserKind, Executable, Host, Launch, Options, find_browsers};
use practice::Sites;
use tokio::runtime::Runtime;

use super::tester::Tester;

/// Far more than any test needs: a hang shows as a failure, not as a stuck run.
const LONGEST_TEST: Duration = Duration::from_mins(2);

pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    pub(crate) host: Host,
    pub(crate) sites: Sites,
}

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let (host, sites) = runtime.block_on(async {
        let sites = Sites::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free loopback port");
        (launch(crate::KIND).await, sites)
    });
    Stage { runtime, host, sites }
});

pub(crate) fn stage() -> &'static Stage {
    &STAGE
}

pub(crate) fn executable(kind: BrowserKind) -> Executable {
    let found = find_browsers().into_iter().find(|found| found.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind} on this machine; run scripts/setup"))
}

/// A browser of the test's own, for tests that harm it.
pub(crate) async fn launch(kind: BrowserKind) -> Host {
    Host::launch(&Launch::new(executable(kind))).await.expect("the browser starts")
}

/// Runs a test on an instance of its own and takes the instance away afterwards.
pub(crate) fn with_instance(test: impl AsyncFnOnce(&mut Tester)) {
    with_options(&Options::default(), test);
}

pub(crate) fn with_options(options: &Options, test: impl AsyncFnOnce(&mut Tester)) {
    let stage = stage();
    stage.runtime.block_on(async {
        let run = async {
            let instance = stage.host.instance(options).await.expect("an instance");
            let mut tester = Tester::new(instance, &stage.sites);
            test(&mut tester).await;
            tester.instance.dispose().await.expect("disposing of the instance");
        };
        tokio::time::timeout(LONGEST_TEST, run).await.expect("the test hangs");
    });
}

/// Runs a test that makes its own instances.
pub(crate) fn with_stage(test: impl AsyncFnOnce(&'static Stage)) {
    let stage = stage();
    stage.runtime.block_on(async {
        tokio::time::timeout(LONGEST_TEST, test(stage)).await.expect("the test hangs");
    });
}
