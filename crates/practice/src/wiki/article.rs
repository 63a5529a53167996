//! What an article is made of, and the small markup of its sentences: `[[Title]]` links to an article,
//! `[[Title|words]]` under other words.

use std::fmt::Write;

use maud::{Markup, html};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The paragraph before the contents.
    pub(crate) summary: String,
    /// The box at the side.
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) sections: Vec<Section>,
}

impl Article {
    pub(crate) fn new(title: &str, kind: Kind, summary: String) -> Self {
        Self { title: title.to_owned(), kind, summary, facts: Vec::new(), sections: Vec::new() }
    }

    pub(crate) fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.facts.push((name, value.into()));
        self
    }

    pub(crate) fn text<const N: usize>(mut self, title: &'static str, paragraphs: [String; N]) -> Self {
        self.sections.push(Section { title, blocks: paragraphs.into_iter().map(Block::Text).collect() });
        self
    }

    /// A table, introduced by a sentence.
    pub(crate) fn table(
        mut self,
        title: &'static str,
        introduction: &str,
        head: &[&'static str],
        rows: Vec<Vec<String>>,
    ) -> Self {
        let table = Block::Table { head: head.to_vec(), rows };
        self.sections.push(Section { title, blocks: vec![Block::Text(introduction.to_owned()), table] });
        self
    }

    pub(crate) fn slug(&self) -> String {
        slug(&self.title)
    }

    /// Everything a reader reads, for the search.
    pub(crate) fn words(&self) -> String {
        let mut words = format!("{} {}", self.title, self.summary);
        for (name, value) in &self.facts {
            // Writing into a String cannot fail.
            let _ = write!(words, " {name} {value}");
        }
        for block in self.sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Text(text) => words.push_str(text),
                Block::Table { rows, .. } => words.push_str(&rows.concat().join(" ")),
            }
            words.push(' ');
        }
        plain(&words)
    }
}

pub(crate) fn slug(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

/// `412000` is `412,000`.
pub(crate) fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One piece of a sentence: words, and the article they lead to.
fn pieces(text: &str) -> Vec<(&str, Option<&str>)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[[") {
        let Some((link, after)) = after.split_once("]]") else { break };
        let (title, words) = link.split_once('|').unwrap_or((link, link));
        pieces.push((before, None));
        pieces.push((words, Some(title)));
        rest = after;
    }
    pieces.push((rest, None));
    pieces
}

pub(crate) fn linked(text: &str) -> Markup {
    html! {
        @for (words, title) in pieces(text) {
            @match title {
                Some(title) => a href={ "/wiki/a/" (slug(title)) } { (words) },
                None => (words),
            }
        }
    }
}

pub(crate) fn plain(text: &str) -> String {
    pieces(text).into_iter().map(|(words, _)| words).collect()
}

/// Titles that a text links to.
#[cfg(test)]
pub(crate) fn links(text: &str) -> Vec<&str> {
    pieces(text).into_iter().filter_map(|(_, title)| title).collect()
}

/// One of several ways to put it; which one, depends on the title and the place only.
pub(crate) fn variety(title: &str, place: u32, ways: &[&'static str]) -> &'static str {
    let sum = title
        .bytes()
        .fold(place.wrapping_mul(2_654_435_761), |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte));
    ways.get((sum >> 7) as usize % ways.len().max(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_sentences() {
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
    fn thousands_are_set_apart() {
        assert_eq!(
            ["1", "999", "1,000", "412,000", "1,240,000"],
            [1, 999, 1000, 412_000, 1_240_000].map(thousands).each_ref().map(String::as_str)
        );
    }
}
