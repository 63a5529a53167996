//! The tasks: short paths through the practice sites by link, URL and search. Most reference answers are the real page
//! titles; some are wrong, so that there are also genuine failures.

use std::{fmt::Write, path::Path, time::Duration};

use serde_json::json;
use testkit::Http;

const SHOP: &str = "Tidewater Goods";
const WIKI: &str = "Aldermark Encyclopedia";
const JOBS: &str = "Aldermark Works";

/// Link on the front page, path to open, text to search for, whether the reference answer is correct.
const PATHS: &[(&str, &str, Option<&str>, bool)] = &[
    (SHOP, "/shop/p/brass-desk-lamp", None, true),
    (WIKI, "/wiki/all", None, true),
    (JOBS, "/jobs/companies", None, true),
    (SHOP, "/shop/", Some("lamp"), true),
    (WIKI, "/wiki/", Some("river"), true),
    (SHOP, "/shop/p/cast-iron-skillet", None, false),
    ("Obstacle course", "/course/buttons", None, true),
    (JOBS, "/jobs/search", None, true),
    (SHOP, "/shop/p/salad-spinner", None, true),
    (WIKI, "/wiki/", Some("city"), false),
    (SHOP, "/shop/cart", None, true),
    (JOBS, "/jobs/companies", None, false),
    (SHOP, "/shop/", Some("kettle"), true),
    ("Obstacle course", "/course/inputs", None, true),
    (WIKI, "/wiki/all", None, false),
    (SHOP, "/shop/p/pour-over-kettle", None, true),
];

/// Writes the task file for the sites at this URL and returns the number of tasks.
pub(crate) async fn write(folder: &Path, root: &str) -> usize {
    let http = Http::new(root, None);
    let base = root.trim_end_matches('/');
    let mut lines = String::new();
    for (id, (link, path, search, is_correct)) in PATHS.iter().enumerate() {
        let found = search.map(|text| format!("{path}search?q={text}"));
        let title = title(&http, found.as_deref().unwrap_or(path)).await;
        let mut name = format!("Choose \"{link}\", open \"{base}{path}\"");
        if let Some(text) = search {
            let _ = write!(name, ", search for \"{text}\"");
        }
        let task = json!({
            "task_id": format!("way-{id}"), "task_name": format!("{name} and say the title."), "website": root,
            "domain": "practice", "subdomain": "ways", "difficulty": 1, "evaluator_reference": ["the page is open"],
            "definite_answer": if *is_correct { title } else { "Something else".to_owned() },
        });
        let _ = writeln!(lines, "{task}");
    }
    std::fs::write(folder.join("tasks.jsonl"), lines).expect("a writable folder");
    PATHS.len()
}

/// Fetches the title of a page without a browser.
async fn title(http: &Http, path: &str) -> String {
    let (path, query) = path.split_once("?q=").map_or((path, None), |(path, text)| (path, Some(text)));
    let query: Vec<(&str, &str)> = query.map(|text| ("q", text)).into_iter().collect();
    testkit::poll_until("the practice sites respond", Duration::from_secs(30), async || {
        let reply = http.try_send(hyper::Method::GET, path, &query, "", &[]).await.ok()?;
        let text = reply.text();
        let title = text.split("<title>").nth(1)?.split("</title>").next()?;
        Some(title.to_owned())
    })
    .await
}
