//! The one that cleans up, also when we were killed: a tiny shell process that waits for its standard input to
//! end (which the kernel does for us, however we die), then kills the browser's process group and removes its
//! profile directory. Clean shutdown takes the same road.

use std::{
    io::Write,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use std::os::unix::process::CommandExt;

/// Reads the group to kill, waits for the end of input, then cleans up. It only kills a group whose leader was
/// started on our profile directory, so a recycled pid is safe.
const SCRIPT: &str = r#"
trap '' HUP INT TERM QUIT PIPE
read -r group
while read -r _; do :; done
alive() { grep -qzF -- "$1" "/proc/$group/cmdline" 2>/dev/null; }
if [ -n "$group" ]; then
  alive "$1" && kill -KILL "-$group" 2>/dev/null
  for pid in $(grep -slF -- "$1" /proc/[0-9]*/cmdline 2>/dev/null); do
    pid=${pid#/proc/}; pid=${pid%/cmdline}
    [ "$pid" = $$ ] || kill -KILL "$pid" 2>/dev/null
  done
fi
for _ in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" 2>/dev/null && [ ! -e "$1" ] && exit 0
  sleep 0.1
done
"#;

pub(crate) struct Guard {
    input: ChildStdin,
}

/// The guard and the child process to reap.
pub(crate) fn start(profile: &Path) -> std::io::Result<(Guard, Child)> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "webgym-guard"])
        .arg(profile)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()?;
    let input = child.stdin.take().ok_or_else(|| std::io::Error::other("the guard has no input"))?;
    Ok((Guard { input }, child))
}

impl Guard {
    /// Tells the guard which process group is the browser's.
    pub(crate) fn watch(&mut self, group: u32) -> std::io::Result<()> {
        writeln!(self.input, "{group}")
    }
}
