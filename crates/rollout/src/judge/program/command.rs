//! Runs the program of a user that scores an episode. It has its own process group, so that it ends with all its children
//! when its time is over or the run is stopped.

use std::{path::Path, process::Stdio, time::Duration};

use client::http::excerpt;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use super::JudgedEpisode;

/// More output than this is an error.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// The file in the episode's folder that holds its task and steps while the program runs.
const TRAJECTORY_FILE: &str = "trajectory.json";

/// What a program said about an episode.
#[derive(Debug, PartialEq)]
pub(super) struct CommandScore {
    pub(super) reward: Value,
    pub(super) reason: Option<String>,
}

/// Runs a program with the episode as JSON in its input, and reads the reward from its output.
pub(super) async fn run(
    command: &[String],
    episode: &JudgedEpisode<'_>,
    url: &str,
    cdp_url: Option<&str>,
    timeout: Duration,
) -> Result<CommandScore, String> {
    let trajectory = episode.folder.map(|folder| folder.join(TRAJECTORY_FILE));
    if let Some(path) = &trajectory {
        let record = json!({"task": episode.task, "steps": episode.steps}).to_string();
        let written = tokio::fs::write(path, record).await;
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let input = json!({
        "task": episode.task, "answer": episode.answer, "url": url, "trajectory": trajectory, "cdp_url": cdp_url,
    });
    let output = run_with_input(command, &input.to_string(), timeout).await;
    if let Some(path) = &trajectory {
        remove(path).await;
    }
    read_score(&output?)
}

async fn remove(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::warn!(%error, path = %path.display(), "cannot remove the trajectory of a judged episode");
    }
}

/// Kills the process group of a program unless the program has ended by itself.
struct GroupGuard(Option<Pid>);

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn run_with_input(command: &[String], input: &str, timeout: Duration) -> Result<String, String> {
    let Some((program, arguments)) = command.split_first() else { return Err("there is no program".into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut guard = GroupGuard(group);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let send = async move {
        // A program that does not read its input closes the pipe.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let finished = async { tokio::join!(send, read_bounded(stdout), read_bounded(stderr), child.wait()) };
    let ((), stdout, stderr, status) = tokio::time::timeout(timeout, finished)
        .await
        .map_err(|_elapsed| format!("{program} did not end within {} s", timeout.as_secs_f64()))?;
    guard.0 = None;
    let (stdout, stderr) = (stdout?, stderr?);
    let status = status.map_err(|error| format!("cannot wait for {program}: {error}"))?;
    if status.success() {
        Ok(stdout)
    } else {
        Err(format!("{program} failed ({status}): {}", excerpt(&stderr)))
    }
}

async fn read_bounded(pipe: Option<impl AsyncRead + Unpin>) -> Result<String, String> {
    let Some(pipe) = pipe else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    let read = pipe.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes).await;
    read.map_err(|error| format!("cannot read the program's output: {error}"))?;
    if bytes.len() as u64 > MAX_OUTPUT_BYTES {
        return Err(format!("the program printed more than {MAX_OUTPUT_BYTES} bytes"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads `{"reward": …, "reason": …}`, or the reward alone.
fn read_score(output: &str) -> Result<CommandScore, String> {
    let not_json = |_| format!("the program printed no JSON: {}", excerpt(output));
    match serde_json::from_str(output.trim()).map_err(not_json)? {
        Value::Object(mut fields) => {
            let missing = || format!("the program printed no \"reward\": {}", excerpt(output));
            let reward = fields.shift_remove("reward").ok_or_else(missing)?;
            let reason = fields.get("reason").and_then(Value::as_str).map(excerpt);
            Ok(CommandScore { reward, reason })
        }
        reward => Ok(CommandScore { reward, reason: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn output_and_failures_are_reported() {
        assert_eq!(run_with_input(&shell("cat"), "hello", LONG).await.unwrap(), "hello");
        let error = run_with_input(&shell("echo bad >&2; exit 3"), "", LONG).await.unwrap_err();
        assert!(error.contains("sh failed (exit status: 3): bad"), "{error}");
        let error = run_with_input(&["/no/such/program".to_owned()], "", LONG).await.unwrap_err();
        assert!(error.contains("cannot start /no/such/program"), "{error}");
        let error = run_with_input(&shell("head -c 2000000 /dev/zero"), "", LONG).await.unwrap_err();
        assert!(error.contains("printed more than"), "{error}");
    }

    /// The program and its child hold a pipe open; its reader ends when both are gone.
    #[tokio::test]
    async fn program_is_killed_with_its_children_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("alive");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let script = format!("sleep 600 >{0} & sleep 600 >{0}", fifo.display());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(std::fs::read(fifo)));
        let error = run_with_input(&shell(&script), "", Duration::from_millis(300)).await.unwrap_err();
        assert!(error.contains("did not end within 0.3 s"), "{error}");
        let read = receiver.recv_timeout(LONG).expect("every child has ended");
        assert!(read.unwrap().is_empty());
    }

    #[test]
    fn score_is_read_from_output() {
        let score = |output: &str| read_score(output).map(|score| (score.reward, score.reason));
        assert_eq!(score("0.5\n"), Ok((json!(0.5), None)));
        assert_eq!(
            score(r#"{"reward": true, "reason": "order found"}"#),
            Ok((json!(true), Some("order found".into())))
        );
        assert!(score("").unwrap_err().contains("printed no JSON"));
        assert!(score("{}").unwrap_err().contains("no \"reward\""));
    }
}
