//! The OpenAPI 3.1 document of each tier, made from the same table of commands that parses requests.

mod bodies;
mod commands;
mod computer;
mod operation;
mod session;

use proto::ErrorCode;
use serde_json::{Map, Value, json};

use bodies::address;
use operation::{Operation, json_response, parameter, public, reference};

/// A tier of the farm. The tiers differ in the parameter `node`, in ids and in `/info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Master,
    Node,
    Instance,
}

impl Tier {
    const fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Node => "node",
            Self::Instance => "instance",
        }
    }
}

/// Returns the OpenAPI document of a tier.
pub fn document(tier: Tier) -> Value {
    let mut paths = Map::new();
    for (path, method, operation) in operations(tier) {
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("webgym {}", tier.name()),
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A farm of isolated browser sessions. Acquire one with /get, act with /execute or /step, \
                            observe with /screenshot or /observe, and release it with /reset.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        // The server that the document was fetched from.
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
            "schemas": {
                "Error": error_schema(),
                "Command": commands::schema(),
                "SessionOptions": session::options(),
                "StorageState": session::storage_state(),
                "Success": {
                    "type": "object", "required": ["status"], "properties": {"status": {"const": "success"}},
                },
            },
        },
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["detail", "code"],
        "properties": {
            "detail": {"type": "string", "description": "What went wrong, as text for people"},
            "code": {"type": "string", "enum": ErrorCode::ALL.map(ErrorCode::as_str)},
            "status": {"const": "error"},
            "message": {"type": "string", "description": "Same as detail; only from the master's /execute and /screenshot"},
        },
    })
}

/// The query parameters that identify an instance.
fn instance_parameters(tier: Tier) -> Vec<Value> {
    let node = || parameter("node", true, &bodies::name(), "The node, as returned by /get");
    let id = parameter("instance_id", true, &bodies::name(), "The instance, as returned by /get");
    (tier == Tier::Master).then(node).into_iter().chain([id]).collect()
}

type PathOperation = (&'static str, &'static str, Value);

fn operations(tier: Tier) -> Vec<PathOperation> {
    let mut all = lease_operations(tier);
    all.extend(instance_operations(tier));
    all.extend(status_operations(tier));
    all.extend(drain_operations(tier));
    all
}

fn lease_operations(tier: Tier) -> Vec<PathOperation> {
    let get = Operation::new("acquire_lease", "Acquire an instance")
        .parameters(bodies::get_parameters())
        .optional_body(reference("SessionOptions"))
        .response(bodies::lease(tier));
    let reset = Operation::new("release_lease", "Release an instance; its slot gets a clean one")
        .parameters(instance_parameters(tier))
        .response(success());
    let session = Operation::new("get_session", "Get the address of a lease for CDP clients")
        .parameters(instance_parameters(tier))
        .response(bodies::lease(tier));
    let mut all = vec![
        ("/get", "post", get.build()),
        ("/session", "get", session.build()),
        ("/reset", "post", reset.build()),
    ];
    // A single instance has no slot for a fork.
    if tier != Tier::Instance {
        let fork = Operation::new(
            "fork_lease",
            "Acquire an instance in the state of a lease that replays an archive",
        )
        .parameters(instance_parameters(tier))
        .parameters(bodies::fork_parameters())
        .response(bodies::lease(tier));
        all.push(("/fork", "post", fork.build()));
    }
    all
}

fn instance_operations(tier: Tier) -> Vec<PathOperation> {
    let on_instance = |id, summary| Operation::new(id, summary).parameters(instance_parameters(tier));
    let screenshot = on_instance("take_screenshot", "Take a screenshot")
        .parameters(bodies::screenshot_parameters())
        .response(bodies::screenshot());
    let execute =
        Operation::new("execute_command", "Execute one browser command and wait until the page has settled")
            .parameters(if tier == Tier::Master { vec![] } else { instance_parameters(tier) })
            .body(bodies::execute(tier))
            .response(json_response(
                "The result of the command",
                &json!({"type": "object", "additionalProperties": true}),
            ));
    let observe = |id, summary, step| {
        Operation::new(id, summary).body(bodies::observe(tier, step)).response(bodies::observed()).build()
    };
    let computer = Operation::new(
        "run_computer_turn",
        "Carry out a model's turn in its own dialect and return what the model expects",
    )
    .body(computer::request(address(tier)))
    .response(computer::response());
    let size = json!({
        "type": "object", "required": ["width", "height"],
        "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
    });
    let metadata =
        on_instance("get_viewport", "Get the size of the viewport").response(json_response("Size", &size));
    let state =
        on_instance("get_storage_state", "Get cookies, localStorage and IndexedDB in Playwright's format")
            .response(json_response("The storage state", &reference("StorageState")));
    let set_state = on_instance(
        "set_storage_state",
        "Replace cookies, localStorage and IndexedDB; the page is not reloaded",
    )
    .body(reference("StorageState"))
    .response(success());
    let on_file = |id, summary| on_instance(id, summary).parameters(vec![bodies::file_name()]);
    let files = on_instance("list_files", "List uploaded files and downloads").response(bodies::files());
    let read_file = on_file("read_file", "Get the content of a file").response(bodies::file_content());
    let write_file = on_file("write_file", "Upload a file, which set_files can choose in a page")
        .file_body()
        .response(json_response("Stored", &reference("Success")));
    let delete_file = on_file("delete_file", "Delete a file").response(success());
    let recording = on_instance(
        "read_recording",
        "Get a part of the recording of a lease with the session option record",
    )
    .parameters(vec![bodies::recording_name()])
    .response(bodies::recording());
    let network = on_instance(
        "get_network_report",
        "Get what was recorded, and how requests were answered, of a lease with the session option network",
    )
    .response(bodies::network_report());
    let probe = on_instance("probe", "Check that the browser of the lease is alive").response(success());
    vec![
        ("/screenshot", "get", screenshot.build()),
        ("/execute", "post", execute.build()),
        (
            "/observe",
            "post",
            observe("observe", "Get screenshot, metadata and elements in one round trip", false),
        ),
        ("/step", "post", observe("step", "Execute a command, settle and observe in one round trip", true)),
        ("/computer", "post", computer.build()),
        ("/metadata", "get", metadata.build()),
        ("/probe", "get", probe.build()),
        ("/files", "get", files.build()),
        ("/files/{name}", "get", read_file.build()),
        ("/files/{name}", "put", write_file.build()),
        ("/files/{name}", "delete", delete_file.build()),
        ("/recording/{name}", "get", recording.build()),
        ("/network", "get", network.build()),
        ("/storage_state", "get", state.build()),
        ("/storage_state", "put", set_state.build()),
    ]
}

fn status_operations(tier: Tier) -> Vec<PathOperation> {
    let info = Operation::new("get_info", "Get capacity and leases").response(bodies::info(tier));
    let metrics = Operation::new("get_metrics", "Get Prometheus metrics").response(bodies::metrics());
    vec![
        ("/info", "get", info.build()),
        ("/metrics", "get", metrics.build()),
        ("/healthz", "get", public("check_health", "Check that the process is up", false)),
        ("/readyz", "get", public("check_readiness", "Check that instances can be leased", true)),
    ]
}

fn success() -> Value {
    json_response("Done", &reference("Success"))
}

/// A single instance cannot be drained: it has only one lease.
fn drain_operations(tier: Tier) -> Vec<PathOperation> {
    let node = || parameter("node", true, &bodies::name(), "The node, as named by /info");
    let operation = |id, summary| {
        let parameters = (tier == Tier::Master).then(node).into_iter().collect();
        Operation::new(id, summary).parameters(parameters).response(bodies::drained()).build()
    };
    if tier == Tier::Instance {
        return Vec::new();
    }
    vec![
        ("/drain", "post", operation("drain_node", "Grant no new leases on a node; existing ones continue")),
        ("/undrain", "post", operation("undrain_node", "Grant leases on the node again")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Command;

    #[test]
    fn every_command_and_path_is_described() {
        for tier in [Tier::Master, Tier::Node, Tier::Instance] {
            let document = document(tier);
            for name in Command::names() {
                assert!(
                    document["components"]["schemas"]["Command"]["properties"][name].is_object(),
                    "{name}"
                );
            }
            for path in [
                "/get",
                "/session",
                "/reset",
                "/screenshot",
                "/execute",
                "/metadata",
                "/probe",
                "/info",
                "/observe",
                "/step",
                "/computer",
                "/storage_state",
                "/files",
                "/files/{name}",
                "/recording/{name}",
                "/network",
            ] {
                assert!(document["paths"][path].is_object(), "{path}");
            }
            for path in ["/drain", "/undrain", "/fork"] {
                assert_eq!(document["paths"][path].is_object(), tier != Tier::Instance, "{path}");
            }
        }
    }

    #[test]
    fn operation_ids_are_present_and_unique() {
        for tier in [Tier::Master, Tier::Node, Tier::Instance] {
            let operations = operations(tier);
            let ids: std::collections::BTreeSet<_> = operations
                .iter()
                .map(|(path, method, operation)| {
                    operation["operationId"]
                        .as_str()
                        .unwrap_or_else(|| panic!("{method} {path} has no operationId"))
                })
                .collect();
            assert_eq!(ids.len(), operations.len(), "{tier:?}: {ids:?}");
        }
    }

    #[test]
    fn only_the_master_has_a_node_parameter() {
        for (tier, expected) in [(Tier::Master, true), (Tier::Node, false), (Tier::Instance, false)] {
            assert_eq!(document(tier).to_string().contains("\"node\""), expected, "{tier:?}");
        }
    }
}
