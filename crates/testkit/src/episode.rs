//! Scripted episodes on a farm, and what their pages showed: for tests that compare recordings, replays and forks.

use serde_json::json;

use crate::{Farm, Lease, modern_site::PASSWORD_SECRET};

/// One action of an episode.
pub enum Act {
    Visit(String),
    /// Clicks an interactive element by its text.
    Click(&'static str),
    /// Fills a field by its name and submits.
    Fill(&'static str, &'static str),
    Wait,
}

/// What a page showed after an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub tree: String,
    pub text: String,
    pub metadata: String,
    pub screenshot: String,
}

pub async fn run_episode(farm: &Farm, lease: &Lease, acts: &[Act]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for act in acts {
        let tree = shown.last().map(|shown| shown.tree.clone()).unwrap_or_default();
        let command = match act {
            Act::Visit(url) => json!({"visit_page": {"url": url}}),
            Act::Click(name) => json!({"click_id": {"id": find(&tree, name)}}),
            Act::Fill(name, value) => {
                json!({"fill_id": {"id": find(&tree, name), "value": value, "press_enter": true}})
            }
            Act::Wait => json!({"sleep": {"duration": 1}}),
        };
        let body = json!({"command": command, "include": ["screenshot", "metadata", "ac_tree"], "interaction_mode": "set_of_marks"});
        let answer = farm.step(lease, body).await.ok();
        assert!(answer["error"].is_null(), "{command}: {}", answer["error"]);
        shown.push(Shown {
            tree: answer["ac_tree"].as_str().unwrap_or_default().to_owned(),
            text: farm.text(lease).await,
            metadata: answer["metadata"].to_string(),
            screenshot: answer["screenshot"].as_str().unwrap_or_default().to_owned(),
        });
    }
    shown
}

/// Returns the id of an element by its text.
fn find(tree: &str, name: &str) -> String {
    let line = tree.lines().find(|line| line.contains(&format!("text: {name}")));
    let line = line.unwrap_or_else(|| panic!("{name} is not in\n{tree}"));
    line.trim_start_matches("id: ").split(',').next().unwrap_or_default().to_owned()
}

/// Ten steps on the modern site, whose home page has this URL.
pub fn modern_episode(home: &str) -> Vec<Act> {
    let at = |path: &str| format!("{}{path}", home.trim_end_matches('/'));
    vec![
        Act::Visit(home.to_owned()),
        Act::Wait,
        Act::Click("More"),
        Act::Click("Ask"),
        Act::Click("Move"),
        Act::Click("More"),
        Act::Visit(at("/old")),
        Act::Visit(home.to_owned()),
        Act::Fill("Password", PASSWORD_SECRET),
        Act::Visit(at("/account")),
    ]
}
