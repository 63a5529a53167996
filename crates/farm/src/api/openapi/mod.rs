//! The API's own description (OpenAPI 3.1), made from the same table of commands that requests are read with.

mod bodies;
mod commands;
mod operation;

use proto::ErrorCode;
use serde_json::{Map, Value, json};

use operation::{Operation, json_answer, open, parameter, reference};

/// Which tier is described: they differ in `node`, in ids and in `/info`.
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

/// The OpenAPI document of a tier.
pub fn document(tier: Tier) -> Value {
    let mut paths = Map::new();
    for (path, method, operation) in operations(tier) {
        paths.insert(path.to_owned(), json!({ method: operation }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("webgym {}", tier.name()),
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A farm of isolated browser sessions. Take one with /get, act with /execute or /step, \
                            look with /screenshot or /observe, give it back with /reset.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
            "schemas": {
                "Error": error_schema(),
                "Command": commands::schema(),
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
            "detail": {"type": "string", "description": "What went wrong, for people"},
            "code": {"type": "string", "enum": ErrorCode::ALL.map(ErrorCode::as_str)},
            "status": {"const": "error"},
            "message": {"type": "string", "description": "As detail, on the master's /execute and /screenshot"},
        },
    })
}

/// What names an instance in a query.
fn whom(tier: Tier) -> Vec<Value> {
    let node = || parameter("node", true, bodies::name(), "The node, as /get gave it");
    let id = parameter("instance_id", true, bodies::name(), "The instance, as /get gave it");
    (tier == Tier::Master).then(node).into_iter().chain([id]).collect()
}

fn operations(tier: Tier) -> Vec<(&'static str, &'static str, Value)> {
    let pictures = bodies::pictures();
    let asked = |summary| Operation::new(summary).parameters(whom(tier));
    let success = json_answer("Done", &reference("Success"));
    let execute = Operation::new("Carry out one browser command and wait until the page has settled")
        .parameters(if tier == Tier::Master { vec![] } else { whom(tier) })
        .body(bodies::execute(tier))
        .answer(json_answer("The command's answer", &json!({"type": "object"})));
    let look = |summary, step| {
        Operation::new(summary).body(bodies::observe(tier, step)).answer(bodies::observed()).build()
    };
    let get =
        Operation::new("Take an instance").parameters(bodies::get_parameters()).answer(bodies::lease(tier));
    let size = json!({
        "type": "object", "required": ["width", "height"],
        "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
    });
    let mut all = vec![
        ("/get", "post", get.build()),
        (
            "/reset",
            "post",
            asked("Give an instance back; its slot is made clean").answer(success.clone()).build(),
        ),
        (
            "/screenshot",
            "get",
            asked("A picture of the page").parameters(bodies::picture_parameters()).answer(pictures).build(),
        ),
        ("/execute", "post", execute.build()),
        ("/observe", "post", look("Look: screenshot, metadata and elements in one round trip", false)),
        ("/step", "post", look("Act, settle and look in one round trip", true)),
        ("/metadata", "get", asked("The viewport's size").answer(json_answer("Size", &size)).build()),
        ("/probe", "get", asked("Is the browser behind the lease alive?").answer(success).build()),
        ("/info", "get", Operation::new("What there is and what is free").answer(bodies::info(tier)).build()),
        ("/metrics", "get", Operation::new("Figures for Prometheus").answer(bodies::figures()).build()),
        ("/healthz", "get", open("The process is up", false)),
        ("/readyz", "get", open("Instances can be had", true)),
    ];
    all.extend(draining(tier));
    all
}

/// A lone instance has nothing to drain: it has one lease.
fn draining(tier: Tier) -> Vec<(&'static str, &'static str, Value)> {
    let node = || parameter("node", true, bodies::name(), "The node, as /info names it");
    let asked = |summary| {
        let parameters = (tier == Tier::Master).then(node).into_iter().collect();
        Operation::new(summary).parameters(parameters).answer(bodies::drained()).build()
    };
    if tier == Tier::Instance {
        return Vec::new();
    }
    vec![
        ("/drain", "post", asked("Give no new leases on a node; those held go on")),
        ("/undrain", "post", asked("Give leases on the node again")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Command;

    #[test]
    fn every_command_and_every_path_is_described() {
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
                "/reset",
                "/screenshot",
                "/execute",
                "/metadata",
                "/probe",
                "/info",
                "/observe",
                "/step",
            ] {
                assert!(document["paths"][path].is_object(), "{path}");
            }
            for path in ["/drain", "/undrain"] {
                assert_eq!(document["paths"][path].is_object(), tier != Tier::Instance, "{path}");
            }
        }
    }

    #[test]
    fn only_the_master_is_told_the_node() {
        for (tier, told) in [(Tier::Master, true), (Tier::Node, false), (Tier::Instance, false)] {
            assert_eq!(document(tier).to_string().contains("\"node\""), told, "{tier:?}");
        }
    }
}
