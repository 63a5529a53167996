//! Renderers and browsers that die, hang or stop: typed errors at once, never a hang, and no harm to others.

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
    stage::{launch, stage, with_options, with_stage},
    table::{Shows, on},
    tester::Tester,
};

/// "At once", on a machine that does other things too.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Far longer than any test runs, so that what ends a command is never its own limit.
fn patient() -> Options {
    Options { operation_timeout: Duration::from_secs(90), ..Options::default() }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("a signal is sent");
}

/// The processes of a browser's group that were started by a command line with these words.
fn processes(group: u32, chosen: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        fields.get(2).is_some_and(|of| *of == group.to_string()) && chosen(&command)
    };
    pids.filter(ours).collect()
}

fn renderers(host: &Host) -> Vec<u32> {
    processes(host.process_group(), |command| command.contains("--type=renderer"))
}

/// The browser itself: some systems start it by way of a shell that stays.
fn main_process(host: &Host) -> u32 {
    let script = |command: &str| command.starts_with("/bin/sh") || command.contains("--type=");
    processes(host.process_group(), |command| !script(command))[0]
}

async fn own_browser() -> (Host, Tester) {
    let host = launch(crate::KIND).await;
    let instance = host.instance(&patient()).await.expect("an instance");
    (host, Tester::new(instance, &stage().sites))
}

/// A page that spins and answers nothing.
async fn spin(tester: &mut Tester) {
    tester.visit("/course/spin").await;
    tester.js("setTimeout(() => { for (;;); }, 0); 0").await;
}

async fn ask_in_vain(instance: &mut Instance) -> (BrowserError, Instant) {
    let question = Command::GetWebpageText { n_lines: 5 };
    let error = instance.execute(&question).await.expect_err("nobody is there to answer");
    (error, Instant::now())
}

/// A round trip to the browser: by then it has read whatever was sent before.
async fn heard(host: &Host) {
    host.connection().root().call::<_, Value>(BROWSER_GET_VERSION, &json!({})).await.expect("a version");
}

#[test]
fn a_killed_renderer_fails_the_command_in_flight_and_all_later_ones_at_once() {
    with_stage(async |_| {
        let (host, mut tester) = own_browser().await;
        spin(&mut tester).await;
        let kill = async {
            heard(&host).await;
            let victims = renderers(&host);
            assert!(!victims.is_empty());
            for pid in victims {
                signal(pid, Signal::KILL);
            }
            Instant::now()
        };
        let ((error, answered), killed) = tokio::join!(ask_in_vain(&mut tester.instance), kill);
        assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
        assert_eq!(error.code(), ErrorCode::InstanceLost);
        assert!(answered - killed < AT_ONCE, "{:?}", answered - killed);
        let begun = Instant::now();
        for command in
            [json!({"click_coords": {"x": 1, "y": 1}}), json!({"screenshot": {}}), json!({"back": {}})]
        {
            let error = tester.fails(command).await;
            assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
        }
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        assert_eq!(tester.instance.lost_reason(), Some(SessionEnd::Crashed));
        let mut other = Tester::new(host.instance(&Options::default()).await.unwrap(), tester.sites);
        other.visit("/course/buttons").await;
        other.take(&on("click_id", "#up")).await;
        other.take(&Shows("#count", "1")).await;
        host.close().await;
    });
}

#[test]
fn a_crash_is_seen_by_whoever_watches_and_the_neighbour_goes_on() {
    with_stage(async |stage| {
        let mut one = Tester::new(stage.host.instance(&patient()).await.unwrap(), &stage.sites);
        let mut other = Tester::new(stage.host.instance(&patient()).await.unwrap(), &stage.sites);
        one.visit("/course/crash").await;
        other.visit("/course/buttons").await;
        assert_eq!(one.instance.lost_reason(), None);
        one.instance.crash_renderer();
        let gone =
            tokio::time::timeout(AT_ONCE * 4, one.instance.wait_lost()).await.expect("the crash is told");
        assert_eq!(gone, SessionEnd::Crashed);
        let error = one.instance.probe().await.unwrap_err();
        assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
        other.take(&on("click_id", "#up")).await;
        other.take(&Shows("#count", "1")).await;
        assert_eq!(other.instance.lost_reason(), None);
        one.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn a_killed_browser_fails_everything_at_once() {
    with_stage(async |_| {
        let (host, mut tester) = own_browser().await;
        let second = host.instance(&patient()).await.unwrap();
        spin(&mut tester).await;
        let kill = async {
            heard(&host).await;
            signal(main_process(&host), Signal::KILL);
            Instant::now()
        };
        let ((error, answered), killed) = tokio::join!(ask_in_vain(&mut tester.instance), kill);
        assert!(matches!(error, BrowserError::Lost(SessionEnd::BrowserExited(_))), "{error}");
        assert_eq!(error.code(), ErrorCode::InstanceLost);
        assert!(answered - killed < AT_ONCE, "{:?}", answered - killed);
        let gone = tokio::time::timeout(AT_ONCE, second.wait_lost()).await.expect("the end is told");
        assert!(matches!(gone, SessionEnd::BrowserExited(_)), "{gone}");
        assert!(host.close_reason().is_some() && second.lost_reason().is_some());
        assert!(host.instance(&Options::default()).await.is_err());
        let error = second.dispose().await.unwrap_err();
        assert!(matches!(error, BrowserError::Lost(SessionEnd::BrowserExited(_))), "{error}");
        host.close().await;
    });
}

#[test]
fn a_stopped_browser_gives_timeouts_and_goes_on_when_it_may() {
    with_stage(async |_| {
        let host = launch(crate::KIND).await;
        let hurried = Options { operation_timeout: Duration::from_secs(2), ..Options::default() };
        let mut tester = Tester::new(host.instance(&hurried).await.unwrap(), &stage().sites);
        tester.visit("/course/buttons").await;
        signal(main_process(&host), Signal::STOP);
        let begun = Instant::now();
        for command in [json!({"get_webpage_text": {}}), json!({"screenshot": {}})] {
            let error = tester.fails(command).await;
            assert_eq!(error.code(), ErrorCode::Timeout, "{error}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert_eq!(tester.instance.lost_reason(), None);
        signal(main_process(&host), Signal::CONT);
        tester.take(&on("click_id", "#up")).await;
        tester.take(&Shows("#count", "1")).await;
        host.close().await;
    });
}

#[test]
fn a_page_that_crashes_while_it_is_waited_for_ends_the_wait() {
    let settle = browser::SettleOptions { budget: Duration::from_secs(90), ..Default::default() };
    with_options(&Options { settle, ..patient() }, async |tester| {
        tester.visit("/course/settle/nothing").await;
        tester.js("document.getElementById('go').onclick = () => { document.title = 'asked'; fetch('/course/never'); }; 0").await;
        let (x, y) = tester.find("#go").await.centre();
        let click = json!({"click_coords": {"x": x, "y": y}});
        let click = Command::from_json(click.as_object().unwrap(), &[]).unwrap();
        // The click's request is never answered, so only the crash can end the wait for it.
        let probe = tester.instance.inspector();
        let crash = async {
            let end = Instant::now() + Duration::from_secs(30);
            while probe.evaluate("document.title").await.is_ok_and(|title| title != "asked") {
                assert!(Instant::now() < end, "the click never arrives");
            }
            probe.crash_renderer();
        };
        let (outcome, ()) = tokio::join!(tester.instance.execute(&click), crash);
        let error = outcome.expect_err("the page is gone");
        assert!(matches!(error, BrowserError::Lost(SessionEnd::Crashed)), "{error}");
    });
}
