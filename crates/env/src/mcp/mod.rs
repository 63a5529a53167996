//! MCP (Model Context Protocol): the browser of a session as tools, over streamable HTTP and over standard input and output. Both
//! the handshake (up to 2025-11-25) and the stateless form (2026-07-28) are served.

mod arguments;
mod calls;
mod http;
mod result;
mod rpc;
mod sessions;
mod stdio;
mod tools;

pub(crate) use calls::{ToolContext, call_tool};
pub(crate) use http::routes;
pub(crate) use rpc::{RpcError, RpcRequest, SERVER_ERROR, response};
pub(crate) use sessions::McpSessions;
pub use stdio::serve_stdio;
pub(crate) use tools::list as list_tools;
