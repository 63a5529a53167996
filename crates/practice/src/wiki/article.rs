//! The parts of an article, and the markup of its text: `[[Title]]` links to an article, `[[Title|label]]` links to
//! it with another label.

use std::fmt::Write;

use maud::{Markup, html};
use serde::Deserialize;

/// The subject of an article; also its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Region,
    City,
    River,
    Mountain,
    Lake,
    Person,
    Invention,
    Overview,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Region,
        Self::City,
        Self::River,
        Self::Mountain,
        Self::Lake,
        Self::Person,
        Self::Invention,
        Self::Overview,
    ];

    /// The category as a heading.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Region => "Regions",
            Self::City => "Cities",
            Self::River => "Rivers",
            Self::Mountain => "Mountains",
            Self::Lake => "Lakes",
            Self::Person => "People",
            Self::Invention => "Inventions",
            Self::Overview => "Overviews",
        }
    }

    pub(crate) fn slug(self) -> String {
        slug(self.name())
    }
}

#[derive(Debug)]
pub(crate) enum Block {
    Text(String),
    Table { head: Vec<&'static str>, rows: Vec<Vec<String>> },
}

#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(crate) struct Article {
    pub(crate) title: String,
    pub(crate) kind: Kind,
    /// The paragraph above the table of contents.
    pub(crate) summary: String,
    /// The rows of the info box.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) sections: Vec<Section>,
}

impl Article {
    pub(crate) fn slug(&self) -> String {
        slug(&self.title)
    }

    /// The whole article as plain text, for the search.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} {}", self.title, self.summary);
        for (name, value) in &self.facts {
            // Writing into a String cannot fail.
            let _ = write!(text, " {name} {value}");
        }
        for block in self.sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Text(paragraph) => text.push_str(paragraph),
                Block::Table { rows, .. } => text.push_str(&rows.concat().join(" ")),
            }
            text.push(' ');
        }
        plain(&text)
    }
}

pub(crate) fn slug(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

/// Formats a number with thousands separators: `412000` is `412,000`.
pub(crate) fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Splits a text into its labels and the titles that they link to.
fn spans(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[[") {
        let Some((link, after)) = after.split_once("]]") else { break };
        let (title, label) = link.split_once('|').unwrap_or((link, link));
        spans.push((before, None));
        spans.push((label, Some(title)));
        rest = after;
    }
    spans.push((rest, None));
    spans
}

/// Renders a text with its links.
pub(crate) fn linked(text: &str) -> Markup {
    html! {
        @for (label, title) in spans(text) {
            @match title {
                Some(title) => a href={ "/wiki/a/" (slug(title)) } { (label) },
                None => (label),
            }
        }
    }
}

/// Returns a text without link markup.
pub(crate) fn plain(text: &str) -> String {
    spans(text).into_iter().map(|(label, _)| label).collect()
}

/// Returns the titles that a text links to.
#[cfg(test)]
pub(crate) fn links(text: &str) -> Vec<&str> {
    spans(text).into_iter().filter_map(|(_, title)| title).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_markup_is_parsed() {
        let text = "From [[Grey Tor]] to the [[Lune|river]].";
        assert_eq!(plain(text), "From Grey Tor to the river.");
        assert_eq!(links(text), ["Grey Tor", "Lune"]);
        assert_eq!(
            linked(text).into_string(),
            "From <a href=\"/wiki/a/grey-tor\">Grey Tor</a> to the <a href=\"/wiki/a/lune\">river</a>."
        );
        assert_eq!(plain("an [[open end"), "an [[open end");
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            ["1", "999", "1,000", "412,000", "1,240,000"],
            [1, 999, 1000, 412_000, 1_240_000].map(thousands).each_ref().map(String::as_str)
        );
    }
}
