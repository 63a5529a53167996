//! Unusual and hostile conversations: the policy never panics, and its replies are valid and deterministic.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proto::InteractionMode;
use rollout::policy::Reply;
use serde_json::{Value, json};

/// Fragments that the policy looks for, combined at random.
const FRAGMENTS: &[&str] = &[
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

fn random_text() -> impl Strategy<Value = String> {
    let fragment =
        prop_oneof![prop::sample::select(FRAGMENTS.to_vec()).prop_map(str::to_owned), "\\PC{0,12}"];
    prop::collection::vec(fragment, 0..40).prop_map(|parts| parts.concat())
}

/// A well-formed message with random parts.
fn random_page() -> impl Strategy<Value = String> {
    (random_text(), random_text(), random_text(), random_text(), 0_u32..12, 0_u32..12).prop_map(|(task, title, elements, text, step, max)| {
        let elements = elements.replace("```", "'''");
        let text = text.replace("```", "'''");
        format!(
            "Task: {task}\nStart website: http://a.test\n\nStep {step} of at most {max}.\nPage: \"{}\" at http://a.test/x?y=z\n\
             Numbered elements:\n```\nid: 1, text: Search, tag: input, type=search\n{elements}\n```\nText of the page:\n```\n{text}\n```",
            title.replace(['"', '\n'], " ")
        )
    })
}

fn request(system: &str, reply: &str, user: &str) -> Value {
    json!({"messages": [
        {"role": "system", "content": system},
        {"role": "user", "content": [{"type": "text", "text": user}]},
        {"role": "assistant", "content": reply},
        {"role": "user", "content": [{"type": "text", "text": user}, {"type": "image_url", "image_url": {"url": "file:///x.png"}}]},
    ]})
}

const COMPLETE: &str = "\"name\":\"web_interaction\" \"element_id\"\nMemory: facts\nAction: one";

/// Checks that the reply is valid for the collector, and the same when repeated.
fn check_reply(request: &Value) -> Result<(), TestCaseError> {
    let text = baseline::reply(request).expect("a conversation");
    let reply = Reply::parse(&text, InteractionMode::SetOfMarks);
    prop_assert_eq!(&reply.problem, &None, "{}", text);
    prop_assert_eq!(text.matches("<tool_call>").count(), 1, "{}", text);
    prop_assert_eq!(text, baseline::reply(request).expect("a conversation"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_a_valid_reply(user in random_text(), reply in random_text(), system in random_text()) {
        check_reply(&request(COMPLETE, &reply, &user))?;
        let any = baseline::reply(&request(&system, &reply, &user));
        prop_assert!(any.is_ok());
    }

    #[test]
    fn any_page_gets_a_valid_reply(user in random_page(), reply in random_text()) {
        check_reply(&request(COMPLETE, &reply, &user))?;
        check_reply(&request("", &reply, &user))?;
    }

    #[test]
    fn own_reply_is_accepted_as_history(first in random_page(), second in random_page()) {
        let reply = baseline::reply(&request(COMPLETE, "", &first)).unwrap();
        check_reply(&request(COMPLETE, &reply, &second))?;
    }

    #[test]
    fn any_json_is_answered_or_rejected(text in "[\\[\\]{}\":,a-z0-9]{0,60}") {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let _ = baseline::reply(&value);
            let _ = baseline::reply(&json!({"messages": value}));
        }
    }
}

#[test]
fn large_page_is_handled_quickly() {
    let element = |n| format!("id: {n}, text: Thing {n} of many things, tag: a\n");
    let elements = (0..400).map(element).collect::<Vec<_>>().concat();
    let lines = |n| format!("Thing {n} of many things\nLabel: {n} km\nA | {n} | $3\n");
    let text = (0..2_000).map(lines).collect::<Vec<_>>().concat();
    let task = "Which of the things is the cheapest and longest of many things? ".repeat(60);
    let user = format!(
        "Task: {task}\nStart website: x\n\nStep 1 of at most 9.\nPage: \"Things\" at http://a.test/\nNumbered elements:\n```\n{elements}```\nText of the \
         page:\n```\n{text}```"
    );
    let start = Instant::now();
    baseline::reply(&request(COMPLETE, "", &user)).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
