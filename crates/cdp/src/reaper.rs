//! The reaper: a small shell process that cleans up after a browser, even if our process is killed. It leads the
//! browser's process group and waits until its standard input closes, which the kernel does however we end. Then it
//! kills the rest of the group and removes the profile directory. A clean shutdown uses the same mechanism.

use std::{
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use std::os::unix::process::CommandExt;

/// While the reaper lives, the kernel cannot reuse its group id, so no unrelated process is killed. The script uses
/// shell builtins where it matters: a helper process would be a member of the group too. The group is empty only when
/// two passes found no process: a process can fork a child behind the first pass and exit before that pass reaches it.
const SCRIPT: &str = r#"
trap '' HUP INT TERM QUIT PIPE
while read -r _; do :; done
profile=$1 empty=0 round=0
while [ $empty -lt 2 ] && [ $round -lt 250 ]; do
  empty=$((empty + 1)) round=$((round + 1))
  for file in /proc/[0-9]*/stat; do
    read -r stat 2>/dev/null < "$file" || continue
    pid=${stat%% *}
    set -- ${stat##*) }
    [ "$3" = $$ ] && [ "$pid" != $$ ] && [ "$1" != Z ] || continue
    empty=0
    kill -KILL "$pid" 2>/dev/null
  done
  [ $empty -gt 0 ] || sleep 0.02
done
round=0
until rm -rf -- "$profile" 2>/dev/null && [ ! -e "$profile" ] || [ $round -ge 50 ]; do
  round=$((round + 1)); sleep 0.1
done
"#;

/// Keeps the reaper waiting. Dropping it closes the reaper's standard input, which starts the cleanup.
pub(crate) struct Reaper {
    _stdin: ChildStdin,
}

/// Starts a reaper for `profile`. The child's process id is the group that the browser must join.
pub(crate) fn start(profile: &Path) -> std::io::Result<(Reaper, Child)> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "webgym-reaper"])
        .arg(profile)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()?;
    let stdin =
        child.stdin.take().ok_or_else(|| std::io::Error::other("the reaper has no standard input"))?;
    Ok((Reaper { _stdin: stdin }, child))
}
