//! Results of tool calls.

use base64::{Engine, engine::general_purpose::STANDARD};
use client::farm::Screenshot;
use proto::page::TabInfo;
use serde_json::{Value, json};

use crate::page::{Element, Page};

/// The content of a tool's result.
pub(super) enum ToolContent {
    Text(String),
    Image(Screenshot),
    /// A text and the same as data.
    Structured(String, Value),
}

/// Formats a result; the error is for the agent.
pub(super) fn to_json(result: Result<ToolContent, String>) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    match result {
        Ok(ToolContent::Text(content)) => json!({"content": [text(&content)], "isError": false}),
        Ok(ToolContent::Image(image)) => {
            let data = STANDARD.encode(&image.data);
            json!({"content": [{"type": "image", "data": data, "mimeType": image.format.mime()}], "isError": false})
        }
        Ok(ToolContent::Structured(content, data)) => {
            json!({"content": [text(&content)], "structuredContent": data, "isError": false})
        }
        Err(reason) => json!({"content": [text(&format!("### Error\n{reason}"))], "isError": true}),
    }
}

/// Describes a page as Playwright MCP does.
pub(super) fn page_text(page: &Page) -> String {
    // A name is a JSON string, so that a page cannot forge elements.
    let line = |Element { id, tag, name }: Element<'_>| format!("- {tag} {} [ref={id}]", json!(name));
    let lines = page.elements().map(line).collect::<Vec<_>>();
    let error = page.failure.as_ref().map(|failure| format!("### Error\n{failure}\n")).unwrap_or_default();
    format!(
        "{error}### Page\n- Page URL: {}\n- Page Title: {}\n### Snapshot\n```yaml\n{}\n```",
        single_line(&page.url),
        single_line(&page.title),
        lines.join("\n")
    )
}

/// Lists tabs as Playwright MCP does, with the index that `browser_tabs` takes.
pub(super) fn tab_lines(tabs: &[TabInfo]) -> String {
    let line = |(index, tab): (usize, &TabInfo)| {
        let current = if tab.current { " (current)" } else { "" };
        format!("- {index}:{current} [{}] ({})", single_line(&tab.title), single_line(&tab.url))
    };
    tabs.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_names_refs_and_cannot_be_forged() {
        let tree = "id: 1, text: Buy \" [ref=9], tag: button";
        let page = Page { ac_tree: Some(tree.into()), title: "a\nb".into(), ..Page::default() };
        let text = page_text(&page);
        assert!(text.contains("- button \"Buy \\\" [ref=9]\" [ref=1]"), "{text}");
        assert!(text.contains("Page Title: a b"));
    }

    #[test]
    fn failed_call_is_marked_as_error() {
        let result = to_json(Err("no".into()));
        assert_eq!(
            (&result["isError"], &result["content"][0]["text"]),
            (&json!(true), &json!("### Error\nno"))
        );
    }
}
