//! Starting and ending browser processes: nothing is left behind, however the browser or its owner ends.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod common;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    task::{Context, Waker},
    time::{Duration, Instant},
};

use cdp::{BrowserKind, CallError, Executable, IgnoreEvents, Launch, LaunchError, Sandbox, SessionEnd};
use common::{KINDS, PROMPT_TIMEOUT, TestBrowser, executable, processes_of, signal, wait_until_cleaned_up};
use rustix::process::{Resource, Rlimit, Signal};

#[tokio::test(flavor = "multi_thread")]
async fn closed_browser_leaves_nothing_behind() {
    for kind in KINDS {
        let browser = TestBrowser::start(kind).await;
        let profile = browser.process.profile().to_owned();
        let processes = processes_of(&profile);
        assert!(profile.exists() && processes.len() > 3, "{kind}: {processes:?}");
        assert!(browser.process.version().product.contains("Chrom"), "{:?}", browser.process.version());
        browser.process.close().await;
        assert!(!profile.exists(), "{kind}: the profile exists after close");
        wait_until_cleaned_up(&profile, &processes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tuned_browser_is_scheduled_as_batch_work() {
    const NORMAL: i32 = 0;
    const BATCH: i32 = 3;
    for (tuned, policy) in [(true, BATCH), (false, NORMAL)] {
        let launch = Launch { tuned, ..Launch::new(executable(BrowserKind::HeadlessShell)) };
        let process = launch.start(Arc::new(IgnoreEvents)).await.unwrap();
        let is_browser = |command: &str| !command.contains("webgym-reaper");
        let members = common::group_members(process.process_group(), is_browser);
        let policies: Vec<i32> = members.iter().filter_map(|pid| common::scheduling_policy(*pid)).collect();
        assert!(policies.len() > 2 && policies.iter().all(|used| *used == policy), "{tuned}: {policies:?}");
        process.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_or_killed_browser_leaves_nothing_behind() {
    for kind in KINDS {
        for kill in [false, true] {
            let browser = TestBrowser::start(kind).await;
            let profile = browser.process.profile().to_owned();
            let processes = processes_of(&profile);
            let pending = browser.call_busy_loop();
            if kill {
                browser.process.kill().await;
                assert!(!profile.exists(), "{kind}: the profile exists after kill");
            } else {
                drop(browser.process);
            }
            let error = pending.within(PROMPT_TIMEOUT).await.unwrap_err();
            // The whole group is killed at once. If the renderer dies first, the browser may still report the crash.
            assert!(
                matches!(error.session_end(), Some(SessionEnd::BrowserExited(_) | SessionEnd::Crashed)),
                "{error}"
            );
            wait_until_cleaned_up(&profile, &processes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_browser_can_be_killed() {
    for with_reaper in [false, true] {
        let browser = TestBrowser::start(BrowserKind::HeadlessShell).await;
        let profile = browser.process.profile().to_owned();
        let processes = processes_of(&profile);
        let should_stop = |command: &str| with_reaper || !command.contains("webgym-reaper");
        for pid in common::group_members(browser.process.process_group(), should_stop) {
            signal(pid, Signal::STOP);
        }
        browser.process.kill().await;
        wait_until_cleaned_up(&profile, &processes);
    }
}

/// If the reaper is killed with its group, it cannot clean up; then `close` does.
#[tokio::test(flavor = "multi_thread")]
async fn killed_reaper_leaves_nothing_behind() {
    let browser = TestBrowser::start(BrowserKind::HeadlessShell).await;
    let profile = browser.process.profile().to_owned();
    let processes = processes_of(&profile);
    for pid in &processes {
        signal(*pid, Signal::KILL);
    }
    browser.process.close().await;
    wait_until_cleaned_up(&profile, &processes);
}

const CHILD: &str = "WEBGYM_CDP_TEST_CHILD";

/// Not a test by itself: the child process that the next test starts and kills.
#[tokio::test(flavor = "multi_thread")]
async fn child_process_with_browser() {
    let Some(kind) = std::env::var(CHILD).ok().filter(|kind| kind != "descriptors") else { return };
    let kind = if kind == "shell" { BrowserKind::HeadlessShell } else { BrowserKind::Full };
    let browser = TestBrowser::start(kind).await;
    let _pending = browser.call_busy_loop();
    println!("profile {}", browser.process.profile().display());
    std::future::pending::<()>().await;
}

#[test]
fn browser_does_not_outlive_killed_owner() {
    for kind in ["shell", "full"] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_process_with_browser", "--nocapture"])
            .env(CHILD, kind)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let profile: PathBuf = {
            let mut profiles = lines.filter_map(|line| Some(line.split_once("profile ")?.1.to_owned()));
            profiles.next().expect("the child starts a browser").into()
        };
        assert!(profile.exists());
        let processes = processes_of(&profile);
        assert!(processes.len() > 3, "{processes:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until_cleaned_up(&profile, &processes);
    }
}

/// Not a test by itself: the child process of the next test. It launches with 1, 2, 3, … file descriptors left, so that
/// each step of a launch fails once.
#[tokio::test]
async fn child_process_without_descriptors() {
    if std::env::var(CHILD).as_deref() != Ok("descriptors") {
        return;
    }
    let path = PathBuf::from("/nonexistent");
    let launch = Launch::new(Executable { path, kind: BrowserKind::HeadlessShell });
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
    let mut open: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let mut steps = BTreeSet::new();
    while open.pop().is_some() && !steps.contains("start") {
        steps.insert(match launch.start(Arc::new(IgnoreEvents)).await {
            Err(LaunchError::Prepare { .. }) => "prepare",
            Err(LaunchError::Start { error, .. }) if error.kind() == ErrorKind::NotFound => "start",
            Err(LaunchError::Start { .. }) => "spawn",
            other => panic!("{:?}", other.err()),
        });
    }
    println!("failed at {steps:?}");
}

#[test]
fn launch_without_descriptors_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process_without_descriptors", "--nocapture"])
        .envs([(CHILD, "descriptors".as_ref()), ("TMPDIR", dir.path())])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(output.contains(r#"failed at {"prepare", "#) && output.contains(r#""start"}"#), "{output}");
    for profile in std::fs::read_dir(dir.path()).unwrap().flatten() {
        wait_until_cleaned_up(&profile.path(), &[]);
    }
}

/// A launch can be cancelled while another thread is starting the browser's process. That process must not outlive
/// its reaper, nor remain a zombie.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_launch_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let body = r#"for argument; do case $argument in --user-data-dir=*)
        profile=${argument#*=}; echo "$$ $profile" >> "${0%/*}/started"; mkdir -p "$profile/tmp/late";;
    esac; done
    while :; do sleep 1; done"#;
    let path = script(dir.path(), body);
    let launch = Launch::new(Executable { path: path.clone(), kind: BrowserKind::HeadlessShell });
    let mut context = Context::from_waker(Waker::noop());
    let mut starting: Vec<_> = (0..40).map(|_| Box::pin(launch.start(Arc::new(IgnoreEvents)))).collect();
    for start in &mut starting {
        assert!(start.as_mut().poll(&mut context).is_pending(), "the launch waits for its process");
    }
    drop(starting);
    // This launch is queued behind the cancelled ones: when it fails, they have all been handled.
    let patient = Launch { start_timeout: Duration::from_millis(1), ..launch };
    assert!(patient.start(Arc::new(IgnoreEvents)).await.is_err());
    std::fs::remove_file(&path).unwrap();
    wait_until_cleaned_up(&path, &[]);
    let started = std::fs::read_to_string(dir.path().join("started")).unwrap_or_default();
    for line in started.lines() {
        let (pid, profile) = line.split_once(' ').unwrap();
        wait_until_cleaned_up(Path::new(profile), &[pid.parse().unwrap()]);
    }
}

async fn expect_launch_error(path: &Path, start_timeout: Duration) -> (LaunchError, Duration) {
    let executable = Executable { path: path.to_owned(), kind: BrowserKind::HeadlessShell };
    let launch = Launch { start_timeout, ..Launch::new(executable) };
    let started = Instant::now();
    match launch.start(Arc::new(IgnoreEvents)).await {
        Ok(_) => panic!("{} started as a browser", path.display()),
        Err(error) => (error, started.elapsed()),
    }
}

fn script(dir: &Path, body: &str) -> PathBuf {
    let path = dir.join("not-a-browser");
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn launch_error_contains_stderr() {
    let dir = tempfile::tempdir().unwrap();
    let (error, _) = expect_launch_error(Path::new("/bin/true"), PROMPT_TIMEOUT).await;
    assert!(
        matches!(&error, LaunchError::Unresponsive { error: CallError::SessionEnded { .. }, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("/bin/true"), "{error}");
    let (error, _) = expect_launch_error(Path::new("/bin/sleep"), PROMPT_TIMEOUT).await;
    assert!(error.to_string().contains("sleep:"), "{error}");
    let (error, _) = expect_launch_error(
        &script(dir.path(), "echo one >&2; echo 'no such thing' >&2; exit 3"),
        PROMPT_TIMEOUT,
    )
    .await;
    assert!(error.to_string().contains("one | no such thing"), "{error}");
    let (error, _) = expect_launch_error(Path::new("/nowhere/chromium"), PROMPT_TIMEOUT).await;
    assert!(matches!(error, LaunchError::Start { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_program_is_given_up_after_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let silent = script(dir.path(), &format!("echo $$ > {}; exec sleep 600", pid.display()));
    let (error, elapsed) = expect_launch_error(&silent, Duration::from_millis(700)).await;
    assert!(matches!(error, LaunchError::Unresponsive { error: CallError::Deadline { .. }, .. }), "{error}");
    assert!(
        elapsed >= Duration::from_millis(700) && elapsed < Duration::from_millis(700) + PROMPT_TIMEOUT,
        "{elapsed:?}"
    );
    let pid: u32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let deadline = Instant::now() + common::MAX_WAIT;
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < deadline, "the program still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Uses a fake browser of a later version: unknown events, unknown fields, invalid messages.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_events_and_fields_are_tolerated() {
    let dir = tempfile::tempdir().unwrap();
    let body = r#"
send() { printf '%s\0' "$1" >&4; }
send '{"method":"Future.thing","params":{"x":[1,{"y":null}]},"era":"later"}'
send 'this is not a message'
send '[1,2,3]'
send '{"id":999999,"result":{}}'
send '{"sessionId":"unknown","method":"Page.loadEventFired","params":{}}'
head -c 1 <&3 >/dev/null # Reply only after the call was received.
send '{"id":1,"result":{"product":"Future/999","userAgent":"agent","new":[1]},"extra":1}'
cat <&3 >/dev/null"#;
    let executable = Executable { path: script(dir.path(), body), kind: BrowserKind::HeadlessShell };
    let process = Launch::new(executable).start(Arc::new(IgnoreEvents)).await.unwrap();
    assert_eq!(process.version().product, "Future/999");
    process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn required_sandbox_is_used_or_refused() {
    let launch = Launch { sandbox: Sandbox::Require, ..Launch::new(executable(BrowserKind::HeadlessShell)) };
    let root = rustix::process::geteuid().is_root();
    match launch.start(Arc::new(IgnoreEvents)).await {
        Err(error @ LaunchError::SandboxAsRoot) => {
            assert!(root);
            assert!(error.to_string().contains("--sandbox auto"), "{error}");
        }
        Err(error) => assert!(!root && matches!(error, LaunchError::Unresponsive { .. }), "{error}"),
        Ok(process) => {
            assert!(!root && process.is_sandboxed());
            process.close().await;
        }
    }
}
