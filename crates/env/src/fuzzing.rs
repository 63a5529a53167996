//! The parsers of both protocols, for the fuzzer.

use proto::InteractionMode;
use serde_json::Value;

use crate::{
    action::{AgentAction, Effect, action_context},
    mcp::{self, RpcRequest},
    openenv::{ClientMessage, error_response},
};

/// Parses a message of the OpenEnv protocol, and the action of a step. Returns the error message that the client would get.
pub fn openenv_message(text: &str) -> Option<String> {
    let data = match ClientMessage::parse(text) {
        Ok(ClientMessage::Step(data)) => data,
        Ok(_) => return None,
        Err(error) => return Some(error_response(&error)),
    };
    let context = action_context(InteractionMode::SetOfMarks, (1280, 720), "http://start.test/");
    match AgentAction::parse(&data, &context) {
        Ok(action) => {
            let is_answer = matches!(action.effect, Effect::Answer(_));
            assert_eq!(is_answer, action.record.key == proto::trajectory::Action::ANSWER);
            None
        }
        Err(error) => Some(error_response(&error)),
    }
}

/// Parses a message of MCP. Returns the response to a message that is not a request.
pub fn mcp_message(message: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(message).ok()?;
    match RpcRequest::parse(&message) {
        Ok(request) => {
            let _ = request.check_stateless();
            None
        }
        Err(error) => Some(mcp::response(None, Err(error))),
    }
}
