//! The one that cleans up, also when we were killed: a tiny shell process that leads the browser's process group,
//! waits for its standard input to end (which the kernel sees to, however we die), then kills everyone else in
//! the group and removes the profile directory. Clean shutdown takes the same road.

use std::{
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use std::os::unix::process::CommandExt;

/// While the guard lives the number of its group cannot be given to anybody else, so nobody else is killed. All
/// of it happens in the one shell: a helper process would be in the group too.
const SCRIPT: &str = r#"
trap '' HUP INT TERM QUIT PIPE
while read -r _; do :; done
profile=$1 found=yes round=0
while [ "$found" ] && [ $round -lt 250 ]; do
  found= round=$((round + 1))
  for file in /proc/[0-9]*/stat; do
    read -r stat 2>/dev/null < "$file" || continue
    pid=${stat%% *}
    set -- ${stat##*) }
    [ "$3" = $$ ] && [ "$pid" != $$ ] && [ "$1" != Z ] || continue
    found=yes
    kill -KILL "$pid" 2>/dev/null
  done
  [ -z "$found" ] || sleep 0.02
done
round=0
until rm -rf -- "$profile" 2>/dev/null && [ ! -e "$profile" ] || [ $round -ge 50 ]; do
  round=$((round + 1)); sleep 0.1
done
"#;

/// Held for as long as the browser may live.
pub(crate) struct Guard {
    _input: ChildStdin,
}

/// The guard and the child process to reap; its id is the group the browser has to join.
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
    Ok((Guard { _input: input }, child))
}
