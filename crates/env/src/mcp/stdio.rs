//! MCP over standard input and output: one JSON message per line. The process is the session: it ends with its input.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::{
    calls::{ToolContext, call_tool},
    rpc::{self, INVALID_PARAMS, PARSE_ERROR, RpcError, RpcRequest, complete_stateless, response},
    tools,
};
use crate::{catalog::TaskChoice, environment::Environment, episode::Episode};

/// The longest message that is accepted.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Serves one client until its input ends, then releases the browser. `task_id` chooses the task.
pub async fn serve_stdio(
    environment: &Environment,
    task_id: Option<String>,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut session =
        StdioSession { environment, task: TaskChoice { task_id, ..TaskChoice::default() }, episode: None };
    let mut lines = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(reply) = session.answer(&line).await {
            output.write_all(format!("{reply}\n").as_bytes()).await?;
            output.flush().await?;
        }
    }
    drop(session);
    environment.wait_for_releases().await;
    environment.finish_recording().await.map(drop).map_err(io::Error::other)
}

struct StdioSession<'a> {
    environment: &'a Environment,
    task: TaskChoice,
    episode: Option<Episode>,
}

impl StdioSession<'_> {
    /// Returns the response to a message; none to a notification.
    async fn answer(&mut self, line: &[u8]) -> Option<Value> {
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
