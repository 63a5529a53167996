//! A message of MCP: what is not a request has a JSON-RPC error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    if let Some(response) = env::fuzzing::mcp_message(message) {
        assert_eq!(response["jsonrpc"], "2.0");
        assert!(response["error"]["code"].is_i64());
    }
});
