//! The browser, the practice sites and the runtime that all tests of a binary share. They live as long as the binary; the
//! browser's reaper cleans up afterwards.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::LazyLock,
    time::Duration,
};

use browser::{BrowserKind, Executable, Host, Launch, Options, find_browsers};
use practice::Sites;
use proto::SessionOptions;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::tester::Tester;

/// Far more than any test needs, so that a hang fails the test instead of blocking the run.
const TEST_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) struct Fixture {
    pub(crate) runtime: Runtime,
    pub(crate) host: Host,
    pub(crate) sites: Sites,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let (host, sites) = runtime.block_on(async {
        let sites = Sites::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free loopback port");
        (launch(crate::KIND).await, sites)
    });
    Fixture { runtime, host, sites }
});

pub(crate) fn fixture() -> &'static Fixture {
    &FIXTURE
}

pub(crate) fn executable(kind: BrowserKind) -> Executable {
    let found = find_browsers().into_iter().find(|found| found.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind} on this machine; run scripts/setup"))
}

/// Starts a separate browser, for tests that damage it.
pub(crate) async fn launch(kind: BrowserKind) -> Host {
    Host::launch(&Launch::new(executable(kind))).await.expect("the browser starts")
}

/// Runs a test on a new instance and disposes it afterwards.
pub(crate) fn with_instance(test: impl AsyncFnOnce(&mut Tester)) {
    with_options(&Options::default(), test);
}

pub(crate) fn with_options(options: &Options, test: impl AsyncFnOnce(&mut Tester)) {
    let fixture = fixture();
    fixture.runtime.block_on(async {
        let run = async {
            let instance = fixture.host.instance(options).await.expect("an instance");
            let mut tester = Tester::new(instance, &fixture.sites);
            test(&mut tester).await;
            tester.instance.dispose().await.expect("disposing the instance");
        };
        tokio::time::timeout(TEST_TIMEOUT, run).await.expect("the test timed out");
    });
}

/// Options with those of a session, given as JSON.
pub(crate) fn session_options(session: &Value) -> Options {
    let session = SessionOptions::from_json(session.as_object().expect("an object")).expect("valid options");
    Options::default().with_session(session, None)
}

pub(crate) fn with_session(session: &Value, test: impl AsyncFnOnce(&mut Tester)) {
    with_options(&session_options(session), test);
}

/// Runs a test that creates its own instances.
pub(crate) fn with_fixture(test: impl AsyncFnOnce(&'static Fixture)) {
    let fixture = fixture();
    fixture.runtime.block_on(async {
        tokio::time::timeout(TEST_TIMEOUT, test(fixture)).await.expect("the test timed out");
    });
}
