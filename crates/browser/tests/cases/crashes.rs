//! Renderers and browsers that crash, hang or stop: commands fail at once with a typed error, and second instances continue.

use std::{
    fs,
    time::{Duration, Instant},
};

use browser::{BrowserError, Host, Instance, Options, SessionEnd};
use cdp::protocol::BROWSER_GET_VERSION;
use proto::{Command, ErrorCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{
    fixture::{fixture, launch, with_fixture, with_options},
    table::{HasText, by_id},
    tester::Tester,
};

/// For results that must come immediately; generous because the machine may be busy.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeouts longer than any test, so that no command ends by its own timeout.
fn long_timeouts() -> Options {
    Options { operation_timeout: Duration::from_secs(90), ..Options::default() }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("a signal is sent");
}

/// Returns the processes of a group whose command line matches.
fn processes(group: u32, matches: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        fields.get(2).is_some_and(|of| *of == group.to_string()) && matches(&command)
    };
    pids.filter(ours).collect()
}

fn renderers(host: &Host) -> Vec<u32> {
    processes(host.process_group(), |command| command.contains("--type=renderer"))
}

/// Returns the browser process itself; some systems start it through a shell that keeps running.
fn main_process(host: &Host) -> u32 {
    let script = |command: &str| command.starts_with("/bin/sh") || command.contains("--type=");
    processes(host.process_group(), |command| !script(command))[0]
}

async fn own_browser() -> (Host, Tester) {
    let host = launch(crate::KIND).await;
    let instance = host.instance(&long_timeouts()).await.expect("an instance");
    (host, Tester::new(instance, &fixture().sites))
}

/// Makes the page run an endless loop, so that it answers nothing.
async fn start_busy_loop(tester: &mut Tester) {
    tester.visit("/course/spin").await;
    tester.js("setTimeout(() => { for (;;); }, 0); 0").await;
}

/// Runs a command that fails, and returns when it did.
async fn expect_failure(instance: &mut Instance) -> (BrowserError, Instant) {
    let command = Command::GetWebpageText { n_lines: 5 };
    let error = instance.execute(&command).await.expect_err("the command must fail");
    (error, Instant::now())
}

/// Waits for a round trip to the browser: then it has received all earlier messages.
async fn round_trip(host: &Host) {
    host.connection().root().call::<_, Value>(BROWSER_GET_VERSION, &json!({})).await.expect("a version");
}

#[test]
fn killed_renderer_fails_current_and_later_commands() {
    with_fixture(async |_| {
        let (host, mut tester) = own_browser().await;
        start_busy_loop(&mut tester).await;
        let kill = async {
            round_trip(&host).await;
            let victims = renderers(&host);
            assert!(!victims.is_empty());
            for pid in victims {
                signal(pid, Signal::KILL);
            }
            Instant::now()
        };
        let ((error, failed), killed) = tokio::join!(expect_failure(&mut tester.instance), kill);
        assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
        assert_eq!(error.code(), ErrorCode::InstanceLost);
        assert!(failed - killed < PROMPT_TIMEOUT, "{:?}", failed - killed);
        let started = Instant::now();
        for command in
            [json!({"click_coords": {"x": 1, "y": 1}}), json!({"screenshot": {}}), json!({"back": {}})]
        {
            let error = tester.expect_error(command).await;
            assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
        }
        assert!(started.elapsed() < PROMPT_TIMEOUT, "{:?}", started.elapsed());
        assert_eq!(tester.instance.lost_reason(), Some(SessionEnd::Crashed));
        let mut second = Tester::new(host.instance(&Options::default()).await.unwrap(), tester.sites);
        second.visit("/course/buttons").await;
        second.run_step(&by_id("click_id", "#up")).await;
        second.run_step(&HasText("#count", "1")).await;
        host.close().await;
    });
}

#[test]
fn crash_is_reported_and_other_instance_continues() {
    with_fixture(async |fixture| {
        let mut first = Tester::new(fixture.host.instance(&long_timeouts()).await.unwrap(), &fixture.sites);
        let mut second = Tester::new(fixture.host.instance(&long_timeouts()).await.unwrap(), &fixture.sites);
        first.visit("/course/crash").await;
        second.visit("/course/buttons").await;
        assert_eq!(first.instance.lost_reason(), None);
        first.instance.crash_renderer();
        let gone = tokio::time::timeout(PROMPT_TIMEOUT * 4, first.instance.wait_lost())
            .await
            .expect("the crash is reported");
        assert_eq!(gone, SessionEnd::Crashed);
        let error = first.instance.probe().await.unwrap_err();
        assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
        second.run_step(&by_id("click_id", "#up")).await;
        second.run_step(&HasText("#count", "1")).await;
        assert_eq!(second.instance.lost_reason(), None);
        first.instance.dispose().await.unwrap();
        second.instance.dispose().await.unwrap();
    });
}

#[test]
fn killed_browser_fails_all_commands() {
    with_fixture(async |_| {
        let (host, mut tester) = own_browser().await;
        let second = host.instance(&long_timeouts()).await.unwrap();
        start_busy_loop(&mut tester).await;
        let kill = async {
            round_trip(&host).await;
            signal(main_process(&host), Signal::KILL);
            Instant::now()
        };
        let ((error, failed), killed) = tokio::join!(expect_failure(&mut tester.instance), kill);
        assert!(matches!(error, BrowserError::Lost(SessionEnd::BrowserExited(_))), "{error}");
        assert_eq!(error.code(), ErrorCode::InstanceLost);
        assert!(failed - killed < PROMPT_TIMEOUT, "{:?}", failed - killed);
        let gone =
            tokio::time::timeout(PROMPT_TIMEOUT, second.wait_lost()).await.expect("the end is reported");
        assert!(matches!(gone, SessionEnd::BrowserExited(_)), "{gone}");
        assert!(host.close_reason().is_some() && second.lost_reason().is_some());
        assert!(host.instance(&Options::default()).await.is_err());
        let error = second.dispose().await.unwrap_err();
        assert!(matches!(error, BrowserError::Lost(SessionEnd::BrowserExited(_))), "{error}");
        host.close().await;
    });
}

#[test]
fn stopped_browser_times_out_and_recovers() {
    with_fixture(async |_| {
        let host = launch(crate::KIND).await;
        let short_timeouts = Options { operation_timeout: Duration::from_secs(2), ..Options::default() };
        let mut tester = Tester::new(host.instance(&short_timeouts).await.unwrap(), &fixture().sites);
        tester.visit("/course/buttons").await;
        signal(main_process(&host), Signal::STOP);
        let started = Instant::now();
        for command in [json!({"get_webpage_text": {}}), json!({"screenshot": {}})] {
            let error = tester.expect_error(command).await;
            assert_eq!(error.code(), ErrorCode::Timeout, "{error}");
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        assert_eq!(tester.instance.lost_reason(), None);
        signal(main_process(&host), Signal::CONT);
        tester.run_step(&by_id("click_id", "#up")).await;
        tester.run_step(&HasText("#count", "1")).await;
        host.close().await;
    });
}

#[test]
fn crash_while_settling_ends_the_wait() {
    let settle = browser::SettleOptions { budget: Duration::from_secs(90), ..Default::default() };
    with_options(&Options { settle, ..long_timeouts() }, async |tester| {
        tester.visit("/course/settle/nothing").await;
        tester.js("document.getElementById('go').onclick = () => { document.title = 'clicked'; fetch('/course/never'); }; 0").await;
        let (x, y) = tester.find("#go").await.centre();
        let click = json!({"click_coords": {"x": x, "y": y}});
        let click = Command::from_json(click.as_object().unwrap(), &[]).unwrap();
        // The request is never answered, so only the crash can end the wait.
        let probe = tester.instance.inspector();
        let crash = async {
            let deadline = Instant::now() + Duration::from_secs(30);
            while probe.evaluate("document.title").await.is_ok_and(|title| title != "clicked") {
                assert!(Instant::now() < deadline, "the click does not arrive");
            }
            probe.crash_renderer();
        };
        let (result, ()) = tokio::join!(tester.instance.execute(&click), crash);
        let error = result.expect_err("the page has crashed");
        assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
    });
}
