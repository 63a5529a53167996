//! The servers that a run needs, each a separate process that can be killed and frozen: the practice sites, a policy
//! and a judge. Policy and judge decide only by the request, so equal episodes get equal rewards.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, response::Html, routing::get};
use practice::Sites;
use serde_json::json;
use testkit::{
    arguments::exit,
    sim_model::{ModelReply, ModelRequest, SimModel},
};

/// The latency of the policy: long enough for a fault to happen during a request.
const POLICY_LATENCY: Duration = Duration::from_millis(120);

/// A page that allocates memory until its renderer crashes.
const MEMORY_HOG: &str = "<!doctype html><title>Memory hog</title><p>Allocating.<script>
const blocks = [];
const allocate = () => { blocks.push(new Array(1 << 24).fill(0.5)); setTimeout(allocate, 0); };
setTimeout(allocate, 200);
</script>";

/// Runs one server until the process is killed. Exits with a message if the role is unknown.
pub(crate) async fn play(role: &str, address: SocketAddr) {
    match role {
        "sites" => {
            let _sites = Sites::start(address).expect("the practice sites start");
            let hog = SocketAddr::new(address.ip(), address.port() + 1);
            let listener = tokio::net::TcpListener::bind(hog).await.expect("a free port");
            let router = Router::new().route("/memory-hog", get(async || Html(MEMORY_HOG)));
            axum::serve(listener, router).await.expect("the server runs");
        }
        "policy" => serve(address, POLICY_LATENCY, act).await,
        "judge" => serve(address, Duration::from_millis(20), decide).await,
        _ => exit(&format!("--part must be sites, policy or judge, not {role:?}")),
    }
}

async fn serve(address: SocketAddr, latency: Duration, script: fn(&ModelRequest) -> ModelReply) {
    let _model = SimModel::start_at(address, latency, false, Arc::new(script)).await;
    std::future::pending::<()>().await;
}

/// Returns the text after the last `before`, up to the next `after`.
fn last_between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.rsplit_once(before)?.1.split(after).next()
}

/// Follows the steps of its task: `Choose "LINK", open "URL", [search for "TEXT",] and say the title.` On any other page
/// it gives up, as a policy would on a page that was blank because of a fault.
fn act(request: &ModelRequest) -> ModelReply {
    let parts: Vec<&str> = request.task().split('"').collect();
    let [_, link, _, target, rest @ ..] = parts.as_slice() else { return answer("unknown task") };
    let search = (rest.len() > 1).then(|| rest[1]);
    let (Some(title), Some(here)) = (
        last_between(&request.text, "\nPage: \"", "\" at "),
        request.text.rsplit_once("\nPage: \"").and_then(|(_, page)| page.split("\" at ").nth(1)),
    ) else {
        return answer("no page");
    };
    let here = here.lines().next().unwrap_or_default().trim();
    let path = here.split('/').skip(3).collect::<Vec<_>>().join("/");
    let start = request.text.split("Start website: ").nth(1).and_then(|text| text.lines().next());
    match search {
        _ if Some(here) == start => act_on(request, link, &json!({"action": "click"})),
        Some(text) if here == *target => act_on(request, "Search", &json!({"action": "type", "text": text})),
        Some(_) if path.contains("search?") => answer(title),
        None if here == *target => answer(title),
        // The page behind the link.
        _ if path.ends_with('/') => call(&json!({"action": "navigate", "url": target})),
        _ => answer(&format!("lost at {here}")),
    }
}

fn call(arguments: &serde_json::Value) -> ModelReply {
    ModelReply::call("web_interaction", arguments)
}

fn answer(title: &str) -> ModelReply {
    call(&json!({"action": "answer", "text": title}))
}

/// Performs the action on the element whose name starts with `name`; waits while there is none.
fn act_on(request: &ModelRequest, name: &str, action: &serde_json::Value) -> ModelReply {
    let tree = request.text.rsplit("Numbered elements:").next().unwrap_or_default();
    let named = tree.lines().find(|line| {
        let text = line.split(", text: ").nth(1).unwrap_or_default();
        line.starts_with("id: ") && text.starts_with(name)
    });
    let Some(id) = named.and_then(|line| line["id: ".len()..].split(',').next()) else {
        return call(&json!({"action": "wait", "time": 0.5}));
    };
    let mut action = action.clone();
    action["element_id"] = id.into();
    call(&action)
}

/// Judges every page as not blocked, relevant and supported, so that the reference answer decides.
fn decide(request: &ModelRequest) -> ModelReply {
    let text = &request.text;
    let reply = if let Some(reference) = last_between(text, "Reference answer: ", "\n") {
        // The answer is quoted, so every line starts with `>`.
        let answer = last_between(text, "The agent's answer:", "\n\nDoes ").unwrap_or_default();
        let answer = answer.trim().trim_start_matches('>');
        if answer.trim() == reference.trim() {
            "They agree.\nVerdict: SUCCESS"
        } else {
            "They differ.\nVerdict: NOT SUCCESS"
        }
    } else if text.contains("Blocked: YES") {
        "Nothing keeps it out.\nBlocked: NO"
    } else if text.contains("Verdict: SUCCESS") {
        "It is there.\nVerdict: SUCCESS"
    } else {
        "It shows the page.\nYES"
    };
    ModelReply::Reply(reply.to_owned())
}
