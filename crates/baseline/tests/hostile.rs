//! Odd and hostile conversations: never a panic, always a reply that the collector can use, and the same one every time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proto::InteractionMode;
use rollout::policy::Reply;
use serde_json::{Value, json};

/// Scraps of everything the agent looks for, in any order.
const SCRAPS: &[&str] = &[
    "Task: ",
    "\nStart website: ",
    "\nStep 3 of at most 9.",
    "\nPage: \"",
    "\" at ",
    "http://a.test/?q=1&sort=x#y",
    "\nNumbered elements:\n",
    "```",
    "\n```\n",
    "\nid: 1, text: ",
    ", tag: a",
    ", tag: select",
    ", tag: option",
    ", tag: input, type=number",
    "Text of the page:",
    " | ",
    "\t",
    "\n",
    ": ",
    "$1,234.50",
    "1 May 2025",
    "★ 4.5",
    "two largest",
    "by how many",
    "cheapest",
    "third",
    "“",
    "”",
    "\"",
    "Press “",
    "Type x into y and ",
    "Put two X and ",
    " into the cart",
    " that ",
    " which ",
    "?",
    ". ",
    "Memory: {",
    "}",
    "\"tried\":[",
    "Choose a as b",
    "ß",
    "İ",
    "🦊",
    "\u{301}",
    "\u{0}",
    "<tool_call>",
    "</tool_call>",
    "0 results",
    "page 1 of 9",
    "Next",
    "Sort by",
    "low to high",
    "999999999999999999999",
    "-1",
    "Best of",
];

fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![prop::sample::select(SCRAPS.to_vec()).prop_map(str::to_owned), "\\PC{0,12}"];
    prop::collection::vec(scrap, 0..40).prop_map(|parts| parts.concat())
}

/// A conversation in the right order, its parts at random.
fn ordered() -> impl Strategy<Value = String> {
    (scraps(), scraps(), scraps(), scraps(), 0_u32..12, 0_u32..12).prop_map(|(task, title, tree, text, step, most)| {
        let tree = tree.replace("```", "'''");
        let text = text.replace("```", "'''");
        format!(
            "Task: {task}\nStart website: http://a.test\n\nStep {step} of at most {most}.\nPage: \"{}\" at http://a.test/x?y=z\n\
             Numbered elements:\n```\nid: 1, text: Search, tag: input, type=search\n{tree}\n```\nText of the page:\n```\n{text}\n```",
            title.replace(['"', '\n'], " ")
        )
    })
}

fn request(system: &str, said: &str, user: &str) -> Value {
    json!({"messages": [
        {"role": "system", "content": system},
        {"role": "user", "content": [{"type": "text", "text": user}]},
        {"role": "assistant", "content": said},
        {"role": "user", "content": [{"type": "text", "text": user}, {"type": "image_url", "image_url": {"url": "file:///x.png"}}]},
    ]})
}

const COMPLETE: &str = "\"name\":\"web_interaction\" \"element_id\"\nMemory: facts\nAction: one";

/// One that the collector reads without a problem, at the first and at the second asking.
fn usable(asked: &Value) -> Result<(), TestCaseError> {
    let said = baseline::reply(asked).expect("a conversation");
    let reply = Reply::parse(&said, InteractionMode::SetOfMarks);
    prop_assert_eq!(&reply.problem, &None, "{}", said);
    prop_assert_eq!(said.matches("<tool_call>").count(), 1, "{}", said);
    prop_assert_eq!(said, baseline::reply(asked).expect("a conversation"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_a_usable_reply(user in scraps(), said in scraps(), system in scraps()) {
        usable(&request(COMPLETE, &said, &user))?;
        let any = baseline::reply(&request(&system, &said, &user));
        prop_assert!(any.is_ok());
    }

    #[test]
    fn any_page_gets_a_usable_reply(user in ordered(), said in scraps()) {
        usable(&request(COMPLETE, &said, &user))?;
        usable(&request("", &said, &user))?;
    }

    #[test]
    fn its_own_words_lead_it_on(first in ordered(), second in ordered()) {
        let said = baseline::reply(&request(COMPLETE, "", &first)).unwrap();
        usable(&request(COMPLETE, &said, &second))?;
    }

    #[test]
    fn any_json_is_answered_or_refused(text in "[\\[\\]{}\":,a-z0-9]{0,60}") {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let _ = baseline::reply(&value);
            let _ = baseline::reply(&json!({"messages": value}));
        }
    }
}

#[test]
fn the_largest_page_is_decided_on_quickly() {
    let tree: String =
        (0..400).map(|n| format!("id: {n}, text: Thing {n} of many things, tag: a\n")).collect();
    let text: String =
        (0..2_000).map(|n| format!("Thing {n} of many things\nLabel: {n} km\nA | {n} | $3\n")).collect();
    let task = "Which of the things is the cheapest and longest of many things? ".repeat(60);
    let user = format!(
        "Task: {task}\nStart website: x\n\nStep 1 of at most 9.\nPage: \"Things\" at http://a.test/\nNumbered elements:\n```\n{tree}```\nText of the \
         page:\n```\n{text}```"
    );
    let since = Instant::now();
    baseline::reply(&request(COMPLETE, "", &user)).unwrap();
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}
