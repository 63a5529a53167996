//! The life and death of a browser process: it starts, it ends, and it leaves nothing behind, however we end.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod common;

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cdp::{BrowserKind, CallError, Executable, Gone, Launch, LaunchError, Sandbox};
use common::{AT_ONCE, KINDS, Stand, around, deaf, executable, signal, until_nothing_is_left};
use rustix::process::Signal;

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_browser_leaves_no_process_no_zombie_and_no_profile() {
    for kind in KINDS {
        let stand = Stand::start(kind).await;
        let profile = stand.process.profile().to_owned();
        let processes = around(&profile);
        assert!(profile.exists() && processes.len() > 3, "{kind}: {processes:?}");
        assert!(stand.process.version().product.contains("Chrom"), "{:?}", stand.process.version());
        stand.process.close().await;
        assert!(!profile.exists(), "{kind}: closing waits for the profile to go");
        until_nothing_is_left(&profile, &processes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_or_killed_browser_leaves_nothing_either() {
    for kind in KINDS {
        for kill in [false, true] {
            let stand = Stand::start(kind).await;
            let profile = stand.process.profile().to_owned();
            let processes = around(&profile);
            let hung = stand.spin();
            if kill {
                stand.process.kill().await;
                assert!(!profile.exists(), "{kind}: killing waits for the profile to go");
            } else {
                drop(stand.process);
            }
            let error = hung.within(AT_ONCE).await.unwrap_err();
            // The whole group is killed at once; if the page's process goes first, the browser may just have time to say so.
            assert!(matches!(error.gone(), Some(Gone::Browser(_) | Gone::Crashed)), "{error}");
            until_nothing_is_left(&profile, &processes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_browser_can_be_ended_too() {
    for with_its_guard in [false, true] {
        let stand = Stand::start(BrowserKind::HeadlessShell).await;
        let profile = stand.process.profile().to_owned();
        let processes = around(&profile);
        let stopped = |command: &str| with_its_guard || !command.contains("webgym-guard");
        for pid in common::of_kind(stand.process.pid(), stopped) {
            signal(pid, Signal::STOP);
        }
        stand.process.kill().await;
        until_nothing_is_left(&profile, &processes);
    }
}

/// Killed along with its group, the guard cannot clean up; then we do.
#[tokio::test(flavor = "multi_thread")]
async fn even_without_its_guard_nothing_is_left() {
    let stand = Stand::start(BrowserKind::HeadlessShell).await;
    let profile = stand.process.profile().to_owned();
    let processes = around(&profile);
    for pid in &processes {
        signal(*pid, Signal::KILL);
    }
    stand.process.close().await;
    until_nothing_is_left(&profile, &processes);
}

const CHILD: &str = "WEBGYM_CDP_TEST_CHILD";

/// Not a test by itself: the process that the next test kills.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_holds_a_browser() {
    let Ok(kind) = std::env::var(CHILD) else { return };
    let kind = if kind == "shell" { BrowserKind::HeadlessShell } else { BrowserKind::Full };
    let stand = Stand::start(kind).await;
    let _hung = stand.spin();
    println!("holds {}", stand.process.profile().display());
    std::future::pending::<()>().await;
}

#[test]
fn a_browser_does_not_outlive_a_killed_owner() {
    for kind in ["shell", "full"] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_holds_a_browser", "--nocapture"])
            .env(CHILD, kind)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let profile: PathBuf = {
            let mut said = said.filter_map(|line| Some(line.split_once("holds ")?.1.to_owned()));
            said.next().expect("the child holds a browser").into()
        };
        assert!(profile.exists());
        let processes = around(&profile);
        assert!(processes.len() > 3, "{processes:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        until_nothing_is_left(&profile, &processes);
    }
}

async fn fails_to_start(path: &Path, limit: Duration) -> (LaunchError, Duration) {
    let executable = Executable { path: path.to_owned(), kind: BrowserKind::HeadlessShell };
    let launch = Launch { limit, ..Launch::new(executable) };
    let begun = Instant::now();
    match launch.start(deaf()).await {
        Ok(_) => panic!("{} is no browser", path.display()),
        Err(error) => (error, begun.elapsed()),
    }
}

fn script(dir: &Path, body: &str) -> PathBuf {
    let path = dir.join("not-a-browser");
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_no_browser_is_told_by_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let (error, _) = fails_to_start(Path::new("/bin/true"), AT_ONCE).await;
    assert!(matches!(&error, LaunchError::Silent { error: CallError::Gone { .. }, .. }), "{error}");
    assert!(error.to_string().contains("/bin/true"), "{error}");
    let (error, _) = fails_to_start(Path::new("/bin/sleep"), AT_ONCE).await;
    assert!(error.to_string().contains("sleep:"), "{error}");
    let (error, _) =
        fails_to_start(&script(dir.path(), "echo one >&2; echo 'no such thing' >&2; exit 3"), AT_ONCE).await;
    assert!(error.to_string().contains("one | no such thing"), "{error}");
    let (error, _) = fails_to_start(Path::new("/nowhere/chromium"), AT_ONCE).await;
    assert!(matches!(error, LaunchError::Start { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_says_nothing_is_given_up_within_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let silent = script(dir.path(), &format!("echo $$ > {}; exec sleep 600", pid.display()));
    let (error, took) = fails_to_start(&silent, Duration::from_millis(700)).await;
    assert!(matches!(error, LaunchError::Silent { error: CallError::Deadline { .. }, .. }), "{error}");
    assert!(took >= Duration::from_millis(700) && took < Duration::from_millis(700) + AT_ONCE, "{took:?}");
    let pid: u32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let end = Instant::now() + common::IN_THE_END;
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < end, "the program is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A browser of a later day: unknown events, unknown fields, lines that are no messages.
#[tokio::test(flavor = "multi_thread")]
async fn what_we_do_not_know_is_tolerated() {
    let dir = tempfile::tempdir().unwrap();
    let body = r#"
say() { printf '%s\0' "$1" >&4; }
say '{"method":"Future.thing","params":{"x":[1,{"y":null}]},"era":"later"}'
say 'this is not a message'
say '[1,2,3]'
say '{"id":999999,"result":{}}'
say '{"sessionId":"nobody","method":"Page.loadEventFired","params":{}}'
head -c 1 <&3 >/dev/null # An answer comes after its question.
say '{"id":1,"result":{"product":"Future/999","userAgent":"agent","new":[1]},"extra":1}'
cat <&3 >/dev/null"#;
    let executable = Executable { path: script(dir.path(), body), kind: BrowserKind::HeadlessShell };
    let process = Launch::new(executable).start(deaf()).await.unwrap();
    assert_eq!(process.version().product, "Future/999");
    process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_can_be_insisted_on() {
    let launch = Launch { sandbox: Sandbox::Require, ..Launch::new(executable(BrowserKind::HeadlessShell)) };
    let root = rustix::process::geteuid().is_root();
    match launch.start(deaf()).await {
        Err(error @ LaunchError::SandboxAsRoot) => {
            assert!(root);
            assert!(error.to_string().contains("--sandbox auto"), "{error}");
        }
        Err(error) => assert!(!root && matches!(error, LaunchError::Silent { .. }), "{error}"),
        Ok(process) => {
            assert!(!root && process.sandboxed());
            process.close().await;
        }
    }
}
