//! The servers around a run, each a process of its own that can be killed and frozen: the practice sites, a policy and a
//! judge. Policy and judge decide by what they are shown and by nothing else, so equal episodes get equal rewards.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, response::Html, routing::get};
use practice::Sites;
use serde_json::json;
use testkit::sim_model::{Question, Said, SimModel};

/// How long the policy thinks: long enough for a fault to come in between.
const THINKING: Duration = Duration::from_millis(120);

/// A page that takes memory until its renderer has none left.
const EATER: &str = "<!doctype html><title>Eater</title><p>Eating.<script>
const eaten = [];
const bite = () => { eaten.push(new Array(1 << 24).fill(0.5)); setTimeout(bite, 0); };
setTimeout(bite, 200);
</script>";

/// Plays a part until the process is ended. `None` when there is no such part.
pub(crate) async fn play(part: &str, address: SocketAddr) -> Option<()> {
    match part {
        "sites" => {
            let _sites = Sites::start(address).expect("the practice sites start");
            let eater = SocketAddr::new(address.ip(), address.port() + 1);
            let listener = tokio::net::TcpListener::bind(eater).await.expect("a port");
            let router = Router::new().route("/eater", get(async || Html(EATER)));
            axum::serve(listener, router).await.expect("it serves");
        }
        "policy" => serve(address, THINKING, act).await,
        "judge" => serve(address, Duration::from_millis(20), decide).await,
        _ => return None,
    }
    Some(())
}

async fn serve(address: SocketAddr, latency: Duration, speaker: fn(&Question) -> Said) {
    let _model = SimModel::start_at(address, latency, false, Arc::new(speaker)).await;
    std::future::pending::<()>().await;
}

/// What stands between two marks in a text, for the last time.
fn last_between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.rsplit_once(before)?.1.split(after).next()
}

/// Walks the way its task names: `Choose "LINK", open "ADDRESS", [search for "WORDS",] and say the title.` On a page that
/// is not on this way it gives up, as a policy would that was put on a blank page by somebody else's fault.
fn act(question: &Question) -> Said {
    let words: Vec<&str> = question.task().split('"').collect();
    let [_, link, _, target, rest @ ..] = words.as_slice() else { return say_title("no such task") };
    let search = (rest.len() > 1).then(|| rest[1]);
    let (Some(title), Some(here)) = (
        last_between(&question.text, "\nPage: \"", "\" at "),
        question.text.rsplit_once("\nPage: \"").and_then(|(_, page)| page.split("\" at ").nth(1)),
    ) else {
        return say_title("no page");
    };
    let here = here.lines().next().unwrap_or_default().trim();
    let path = here.split('/').skip(3).collect::<Vec<_>>().join("/");
    let start = question.text.split("Start website: ").nth(1).and_then(|text| text.lines().next());
    match search {
        _ if Some(here) == start => on(question, link, &json!({"action": "click"})),
        Some(words) if here == *target => on(question, "Search", &json!({"action": "type", "text": words})),
        Some(_) if path.contains("search?") => say_title(title),
        None if here == *target => say_title(title),
        // What the link leads to.
        _ if path.ends_with('/') => call(&json!({"action": "navigate", "url": target})),
        _ => say_title(&format!("lost at {here}")),
    }
}

fn call(arguments: &serde_json::Value) -> Said {
    Said::call("web_interaction", arguments)
}

fn say_title(title: &str) -> Said {
    call(&json!({"action": "answer", "text": title}))
}

/// The action on the element whose name begins so; waits while there is none.
fn on(question: &Question, name: &str, action: &serde_json::Value) -> Said {
    let tree = question.text.rsplit("Numbered elements:").next().unwrap_or_default();
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

/// Blocked never, relevant always, supported always; the reference decides.
fn decide(question: &Question) -> Said {
    let text = &question.text;
    let reply = if let Some(reference) = last_between(text, "Reference answer: ", "\n") {
        // A quotation: every line of it is marked as one.
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
    Said::Reply(reply.to_owned())
}
