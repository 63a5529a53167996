//! The supervisor process. It reads orders from its standard input, whose end means that the loop is gone, and reports at its
//! end. All descendants of the program stay its descendants, however they detach themselves, because it is their reaper.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, set_child_subreaper, wait};

use super::{Report, descendants};

/// How long the program may take to end when the loop is gone.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);
/// How long processes that the program left behind may take to end.
const LEFT_BEHIND_GRACE: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs the program and reports how it ended.
pub fn run(log: &Path, lock: &Path, program: &[String]) -> io::Result<()> {
    // Held until this process ends: the next loop waits for it, so that nothing of this one runs beside it.
    let lock = File::options().create(true).append(true).open(lock)?;
    lock.lock_shared()?;
    set_child_subreaper(Pid::from_raw(std::process::id().cast_signed()))?;
    let orders = read_orders()?;
    let report = match start(log, program) {
        Ok(pid) => supervise(pid, &orders),
        Err(error) => Report { error: Some(error.to_string()), ..Report::default() },
    };
    let line = serde_json::to_string(&report)?;
    // The loop may be gone.
    let _ = io::stdout().write_all(line.as_bytes());
    drop(lock);
    Ok(())
}

fn start(log: &Path, program: &[String]) -> io::Result<i32> {
    let Some((name, arguments)) = program.split_first() else {
        return Err(io::Error::other("no program is named"));
    };
    let output = File::options().append(true).create(true).open(log)?;
    let child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()?;
    Ok(child.id().cast_signed())
}

/// Passes on each order as the time that the program may take to end.
fn read_orders() -> io::Result<Receiver<Duration>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let millis = line.strip_prefix("stop ").and_then(|text| text.parse().ok()).unwrap_or(0);
            let _ = sender.send(Duration::from_millis(millis));
        }
        let _ = sender.send(ORPHAN_GRACE);
    })?;
    Ok(receiver)
}

fn supervise(program: i32, orders: &Receiver<Duration>) -> Report {
    let mut status = None;
    loop {
        status = status.or_else(|| reap(program));
        if let Some(status) = status {
            return ended(program, status);
        }
        match orders.recv_timeout(POLL_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            order => {
                let status = stop(program, order.unwrap_or(ORPHAN_GRACE), orders);
                return ended(program, status);
            }
        }
    }
}

/// Ends the program with all its descendants. A later order shortens the time.
fn stop(program: i32, grace: Duration, orders: &Receiver<Duration>) -> ExitStatus {
    let mut status = None;
    let mut end = std::time::Instant::now() + grace;
    ask_to_end(program);
    while std::time::Instant::now() < end {
        status = status.or_else(|| reap(program));
        if let Some(status) = status {
            return status;
        }
        if let Ok(shorter) = orders.recv_timeout(POLL_INTERVAL) {
            end = end.min(std::time::Instant::now() + shorter);
        }
    }
    kill_group(program);
    loop {
        if let Some(status) = status.or_else(|| reap(program)) {
            return status;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn ask_to_end(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    }
}

fn kill_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// Reports the end of the program, after ending what it left behind.
fn ended(program: i32, status: ExitStatus) -> Report {
    let left_behind = descendants::left_behind();
    descendants::end_all(Some(program), LEFT_BEHIND_GRACE);
    Report { code: status.code(), signal: status.signal(), error: None, left_behind }
}

/// Collects ended children. Returns the status of the program if it is among them.
fn reap(program: i32) -> Option<ExitStatus> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid.as_raw_nonzero().get() == program {
            return Some(ExitStatus::from_raw(status.as_raw()));
        }
    }
    None
}
