//! Helpers for the protocol tests: browsers of both kinds with an attached page, and their processes in `/proc`.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "test helpers; each test file uses some of them"
)]

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use cdp::{
    BrowserKind, EventHandler, Executable, IgnoreEvents, Launch, Process, Session, find_browsers,
    protocol as p,
};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) const KINDS: [BrowserKind; 2] = [BrowserKind::HeadlessShell, BrowserKind::Full];

/// For results that must come immediately; generous because the machine may be busy.
pub(crate) const PROMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Far longer than any step here takes.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);

pub(crate) fn executable(kind: BrowserKind) -> Executable {
    let found = find_browsers().into_iter().find(|found| found.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind} on this machine; run scripts/setup"))
}

/// Reports the session id and target id of every attached target.
struct AttachedTargets(mpsc::UnboundedSender<(String, String)>);

impl EventHandler for AttachedTargets {
    fn on_event(&self, _: &Session, method: &str, params: &[u8]) {
        if method == p::TARGET_ATTACHED_TO_TARGET {
            let event: Value = cdp::parse_params(params).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let _ = self.0.send((text(&event["sessionId"]), text(&event["targetInfo"]["targetId"])));
        }
    }
}

/// A browser with one attached page.
pub(crate) struct TestBrowser {
    pub(crate) process: Process,
    pub(crate) page: Session,
    pub(crate) target: String,
}

impl TestBrowser {
    pub(crate) async fn start(kind: BrowserKind) -> Self {
        let (sender, mut attached) = mpsc::unbounded_channel();
        let targets = Arc::new(AttachedTargets(sender));
        let process = Launch::new(executable(kind)).start(targets).await.expect("the browser starts");
        let root = process.connection().root();
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "page"}]});
        root.run(p::TARGET_SET_AUTO_ATTACH, &attach).await.unwrap();
        root.run(p::TARGET_CREATE_TARGET, &json!({"url": "about:blank"})).await.unwrap();
        let (session, target) = attached.recv().await.unwrap();
        let page = process.connection().attach(&session, Arc::new(IgnoreEvents));
        for domain in [p::PAGE_ENABLE, p::INSPECTOR_ENABLE] {
            page.run(domain, &json!({})).await.unwrap();
        }
        Self { process, page, target }
    }

    /// Sends a call that is never answered while the page stays responsive.
    pub(crate) fn call_unresolved_promise(&self) -> cdp::PendingCall {
        let params = json!({"expression": "new Promise(() => {})", "awaitPromise": true});
        self.page.send(p::RUNTIME_EVALUATE, &params)
    }

    /// Sends a call that is never answered because the page runs an endless loop.
    pub(crate) fn call_busy_loop(&self) -> cdp::PendingCall {
        self.page.send(p::RUNTIME_EVALUATE, &json!({"expression": "for (;;);"}))
    }
}

pub(crate) async fn evaluate(page: &Session, script: &str) -> Result<Value, cdp::CallError> {
    page.call(p::RUNTIME_EVALUATE, &json!({"expression": script, "returnByValue": true})).await
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(pid: u32, file: &str) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()).into_owned()
}

/// Returns the state and the process group of a process.
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = read(pid, "stat");
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some(((*fields.first()?).to_owned(), fields.get(2)?.parse().ok()?))
}

/// Returns all processes of the browser with this profile: those whose command line contains it, and their groups.
pub(crate) fn processes_of(profile: &Path) -> Vec<u32> {
    let named: Vec<u32> =
        pids().filter(|pid| read(*pid, "cmdline").contains(profile.to_str().unwrap())).collect();
    let groups: Vec<u32> = named.iter().filter_map(|pid| Some(stat(*pid)?.1)).collect();
    let ours = getpgrp().as_raw_nonzero().get().cast_unsigned();
    let in_group = |pid: &u32| stat(*pid).is_some_and(|(_, group)| group != ours && groups.contains(&group));
    pids().filter(|pid| named.contains(pid) || in_group(pid)).collect()
}

/// Returns the processes of a group whose command line matches.
pub(crate) fn group_members(group: u32, matches: impl Fn(&str) -> bool) -> Vec<u32> {
    let ours = |pid: &u32| stat(*pid).is_some_and(|(_, of)| of == group) && matches(&read(*pid, "cmdline"));
    pids().filter(ours).collect()
}

/// The scheduling policy of a process, by the kernel's number; `None` if the process has ended.
pub(crate) fn scheduling_policy(pid: u32) -> Option<i32> {
    let stat = read(pid, "stat");
    let (_, fields) = stat.rsplit_once(')')?;
    // The 41st field; the second one ends with the parenthesis.
    fields.split_whitespace().nth(38)?.parse().ok()
}

/// Returns the browser process itself; some systems start it through a shell that keeps running.
pub(crate) fn main_process(process: &Process) -> u32 {
    group_members(process.process_group(), |command| {
        !command.starts_with("/bin/sh") && !command.contains("--type=")
    })[0]
}

pub(crate) fn renderers(process: &Process) -> Vec<u32> {
    group_members(process.process_group(), |command| command.contains("--type=renderer"))
}

/// Waits until neither a process (not even a zombie) nor the profile of a browser is left.
pub(crate) fn wait_until_cleaned_up(profile: &Path, processes: &[u32]) {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let alive = processes_of(profile);
        let dead: Vec<_> = processes.iter().filter_map(|pid| Some((*pid, stat(*pid)?))).collect();
        if alive.is_empty() && dead.is_empty() && !profile.exists() {
            return;
        }
        assert!(Instant::now() < deadline, "left: {alive:?} {dead:?}, profile exists: {}", profile.exists());
        std::thread::sleep(Duration::from_millis(20));
    }
}
