//! What the tests of the protocol layer share: browsers of both kinds, a page in one, and a look at what is left
//! of them in `/proc`.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper of tests; each uses its part"
)]

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use cdp::{BrowserKind, Events, Executable, Launch, Process, Session, find_all, protocol as p};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) const KINDS: [BrowserKind; 2] = [BrowserKind::HeadlessShell, BrowserKind::Full];

/// "At once", on a machine that does other things too.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(5);
/// "In the end": far longer than anything here takes.
pub(crate) const IN_THE_END: Duration = Duration::from_secs(30);

pub(crate) fn executable(kind: BrowserKind) -> Executable {
    let found = find_all().into_iter().find(|found| found.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind} on this machine; run scripts/setup"))
}

/// Hears everything and keeps what was attached.
pub(crate) struct Ears {
    attached: mpsc::UnboundedSender<(String, String)>,
    pub(crate) heard: Mutex<Vec<String>>,
}

impl Events for Ears {
    fn event(&self, _: &Session, method: &str, params: &[u8]) {
        self.heard.lock().unwrap().push(method.to_owned());
        if method == p::TARGET_ATTACHED_TO_TARGET {
            let event: Value = cdp::params(params).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let _ = self.attached.send((text(&event["sessionId"]), text(&event["targetInfo"]["targetId"])));
        }
    }
}

struct Deaf;

impl Events for Deaf {
    fn event(&self, _: &Session, _: &str, _: &[u8]) {}
}

pub(crate) fn deaf() -> Arc<dyn Events> {
    Arc::new(Deaf)
}

/// A browser with one attached page.
pub(crate) struct Stand {
    pub(crate) process: Process,
    pub(crate) page: Session,
    pub(crate) target: String,
}

impl Stand {
    pub(crate) async fn start(kind: BrowserKind) -> Self {
        let (sender, mut attached) = mpsc::unbounded_channel();
        let ears = Arc::new(Ears { attached: sender, heard: Mutex::default() });
        let process = Launch::new(executable(kind)).start(ears).await.expect("the browser starts");
        let root = process.connection().root();
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": [{"type": "page"}]});
        root.run(p::TARGET_SET_AUTO_ATTACH, &attach).await.unwrap();
        root.run(p::TARGET_CREATE_TARGET, &json!({"url": "about:blank"})).await.unwrap();
        let (session, target) = attached.recv().await.unwrap();
        let page = process.connection().attach(&session, deaf());
        for domain in [p::PAGE_ENABLE, p::INSPECTOR_ENABLE] {
            page.run(domain, &json!({})).await.unwrap();
        }
        Self { process, page, target }
    }

    /// A call that is never answered, by a page that could.
    pub(crate) fn wait(&self) -> cdp::Pending {
        let params = json!({"expression": "new Promise(() => {})", "awaitPromise": true});
        self.page.send(p::RUNTIME_EVALUATE, &params)
    }

    /// A call that is never answered: the page spins.
    pub(crate) fn spin(&self) -> cdp::Pending {
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

/// State and process group, as the kernel has them.
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = read(pid, "stat");
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some(((*fields.first()?).to_owned(), fields.get(2)?.parse().ok()?))
}

/// Every process that has to do with a profile: those that name it, and whoever shares a group with them.
pub(crate) fn around(profile: &Path) -> Vec<u32> {
    let named: Vec<u32> =
        pids().filter(|pid| read(*pid, "cmdline").contains(profile.to_str().unwrap())).collect();
    let groups: Vec<u32> = named.iter().filter_map(|pid| Some(stat(*pid)?.1)).collect();
    let ours = getpgrp().as_raw_nonzero().get().cast_unsigned();
    let beside = |pid: &u32| stat(*pid).is_some_and(|(_, group)| group != ours && groups.contains(&group));
    pids().filter(|pid| named.contains(pid) || beside(pid)).collect()
}

pub(crate) fn of_kind(group: u32, chosen: impl Fn(&str) -> bool) -> Vec<u32> {
    let ours = |pid: &u32| stat(*pid).is_some_and(|(_, of)| of == group) && chosen(&read(*pid, "cmdline"));
    pids().filter(ours).collect()
}

/// The browser itself: some systems start it by way of a shell that stays.
pub(crate) fn main_process(process: &Process) -> u32 {
    of_kind(process.pid(), |command| !command.starts_with("/bin/sh") && !command.contains("--type="))[0]
}

pub(crate) fn renderers(process: &Process) -> Vec<u32> {
    of_kind(process.pid(), |command| command.contains("--type=renderer"))
}

/// Waits until nothing of a browser is left: no process (not even a dead one), no file.
pub(crate) fn until_nothing_is_left(profile: &Path, processes: &[u32]) {
    let end = Instant::now() + IN_THE_END;
    loop {
        let alive = around(profile);
        let dead: Vec<_> = processes.iter().filter_map(|pid| Some((*pid, stat(*pid)?))).collect();
        if alive.is_empty() && dead.is_empty() && !profile.exists() {
            return;
        }
        assert!(Instant::now() < end, "left: {alive:?} {dead:?}, profile there: {}", profile.exists());
        std::thread::sleep(Duration::from_millis(20));
    }
}
