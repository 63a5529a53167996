//! MCP over standard input and output: one JSON message per line. The process is the session: it ends with its input.

use std::{io, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
};

use super::{
    calls::{ToolContext, call_tool},
    rpc::{
        self, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError, RpcRequest, complete_stateless,
        response,
    },
    tools,
};
use crate::{catalog::TaskChoice, environment::Environment, episode::Episode};

/// The longest message that is accepted.
const MAX_LINE_BYTES: usize = 16 << 20;
/// Messages that may wait while one is handled.
const MAX_PENDING: usize = 16;
/// How long messages that were sent before the end of the input may still take.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long releasing the browser may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves one client until its input ends, its output is closed or `stop` completes. Then it releases the browser and saves
/// the episode. `task_id` chooses the task.
pub async fn serve_stdio(
    environment: &Environment,
    task_id: Option<String>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let task = TaskChoice { task_id, ..TaskChoice::default() };
    let known = environment.tasks().check(&task);
    known.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
    let mut session = StdioSession { environment, task, episode: None };
    let (sender, messages) = mpsc::channel(MAX_PENDING);
    let served = {
        let answers = session.answer_all(messages, output);
        tokio::pin!(answers);
        tokio::select! {
            // An error means that the client has closed the output.
            _ = &mut answers => Ok(()),
            read = read_lines(input, sender) => {
                let _ = tokio::time::timeout(END_TIMEOUT, answers).await;
                read
            }
            () = stop => Ok(()),
        }
    };
    drop(session);
    if tokio::time::timeout(RELEASE_TIMEOUT, environment.wait_for_releases()).await.is_err() {
        tracing::warn!("the lease could not be released; it expires on the farm");
    }
    environment.finish_recording().await.map_err(io::Error::other)?;
    served
}

/// A line of the input, or nothing in place of one that was too long.
type Line = Option<Vec<u8>>;

/// Passes the lines of the input on until it ends.
async fn read_lines(input: impl AsyncRead + Unpin, lines: mpsc::Sender<Line>) -> io::Result<()> {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        if (&mut input).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let is_too_long = line.len() == MAX_LINE_BYTES && line.last() != Some(&b'\n');
        if is_too_long {
            skip_line(&mut input).await?;
        } else if line.trim_ascii().is_empty() {
            continue;
        }
        if lines.send((!is_too_long).then_some(line)).await.is_err() {
            return Ok(());
        }
    }
}

/// Reads the rest of a line without keeping it.
async fn skip_line(input: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<()> {
    loop {
        let buffered = input.fill_buf().await?;
        let end = buffered.iter().position(|byte| *byte == b'\n');
        let (length, is_end) = end.map_or((buffered.len(), buffered.is_empty()), |end| (end + 1, true));
        input.consume(length);
        if is_end {
            return Ok(());
        }
    }
}

struct StdioSession<'a> {
    environment: &'a Environment,
    task: TaskChoice,
    episode: Option<Episode>,
}

impl StdioSession<'_> {
    /// Answers messages in order until the input ends or the output is closed.
    async fn answer_all(
        &mut self,
        mut messages: mpsc::Receiver<Line>,
        mut output: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        while let Some(line) = messages.recv().await {
            if let Some(reply) = self.answer(line.as_deref()).await {
                output.write_all(format!("{reply}\n").as_bytes()).await?;
                output.flush().await?;
            }
        }
        Ok(())
    }

    /// Returns the response to a message; none to a notification.
    async fn answer(&mut self, line: Option<&[u8]>) -> Option<Value> {
        let Some(line) = line else {
            let reason = format!("the message is larger than {} MiB", MAX_LINE_BYTES >> 20);
            return Some(response(None, Err(RpcError::new(INVALID_REQUEST, reason))));
        };
        let parsed = serde_json::from_slice(line);
        let parsed = parsed.map_err(|error| RpcError::new(PARSE_ERROR, format!("not JSON: {error}")));
        let request = match parsed.and_then(|message: Value| RpcRequest::parse(&message)) {
            Ok(request) => request,
            Err(error) => return Some(response(None, Err(error))),
        };
        let id = request.id.clone()?;
        Some(response(Some(&id), self.handle(&request).await))
    }

    async fn handle(&mut self, request: &RpcRequest) -> Result<Value, RpcError> {
        let is_stateless = request.stateless_version().is_some();
        if is_stateless {
            request.check_stateless()?;
        }
        let result = match request.method.as_str() {
            "initialize" if !is_stateless => rpc::initialized(request),
            "server/discover" if is_stateless => return Ok(complete_stateless(rpc::discovered(), true)),
            "ping" => json!({}),
            "tools/list" => {
                let listed = json!({"tools": tools::list(!self.environment.tasks().is_empty(), false)});
                return Ok(if is_stateless { complete_stateless(listed, true) } else { listed });
            }
            "tools/call" => {
                let name = request
                    .text_param("name")
                    .ok_or_else(|| RpcError::new(INVALID_PARAMS, "name is missing"))?;
                let arguments =
                    request.params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
                let context =
                    ToolContext { environment: self.environment, task: &self.task, reads_local_files: true };
                call_tool(context, &mut self.episode, name, &arguments).await?
            }
            other => return Err(RpcError::unknown_method(other)),
        };
        Ok(if is_stateless { complete_stateless(result, false) } else { result })
    }
}
