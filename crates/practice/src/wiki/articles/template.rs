//! Article templates: text with placeholders, loaded from `data/wiki/articles/` and filled with the facts of one subject.
//!
//! `{name}` is replaced by a value, `{population:thousands}` by a number with thousands separators.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::{
    article::{Article, Block, Kind, Section, thousands},
    world::COUNTRY,
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Template {
    pub(super) kind: Kind,
    pub(super) title: &'static str,
    /// Evaluated in order; later phrases, the summary, facts and sections can use the earlier ones as values.
    pub(super) phrases: Vec<Phrase>,
    pub(super) summary: &'static str,
    /// The rows of the info box.
    #[serde(borrow)]
    pub(super) facts: Vec<(&'static str, &'static str)>,
    pub(super) sections: Vec<SectionTemplate>,
}

/// A part of a sentence that depends on the subject.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Phrase {
    /// One text if a value is present, another if it is empty, null or false.
    Condition {
        name: &'static str,
        #[serde(rename = "if")]
        value: &'static str,
        then: &'static str,
        #[serde(rename = "else")]
        otherwise: &'static str,
    },
    /// One of several texts, chosen by the article's title and the salt.
    Variant {
        name: &'static str,
        salt: u32,
        #[serde(borrow)]
        any_of: Vec<&'static str>,
    },
    /// The items of a list: `a, b and c`.
    List { name: &'static str, each: &'static str, item: &'static str },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionTemplate {
    title: &'static str,
    #[serde(borrow)]
    paragraphs: Vec<&'static str>,
    pub(super) table: Option<TableTemplate>,
}

/// A table with one row for each item of a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableTemplate {
    #[serde(borrow)]
    head: Vec<&'static str>,
    pub(super) each: &'static str,
    #[serde(borrow)]
    row: Vec<&'static str>,
}

/// The values and lists that a template can use.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    values: Map<String, Value>,
    lists: BTreeMap<&'static str, Vec<Facts>>,
}

impl Facts {
    /// The fields of a record.
    pub(super) fn of(record: &impl Serialize) -> Self {
        match serde_json::to_value(record) {
            Ok(Value::Object(values)) => Self { values, ..Self::default() },
            _ => Self::default(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn with_list(mut self, name: &'static str, items: impl IntoIterator<Item = Self>) -> Self {
        self.lists.insert(name, items.into_iter().collect());
        self
    }

    /// Adds a list of records.
    pub(super) fn with_records<'a, T: Serialize + 'a>(
        self,
        name: &'static str,
        records: impl IntoIterator<Item = &'a T>,
    ) -> Self {
        self.with_list(name, records.into_iter().map(Self::of))
    }

    fn list(&self, name: &str) -> &[Self] {
        self.lists.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn is_present(&self, name: &str) -> bool {
        match self.values.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        }
    }

    /// The text of a placeholder; `None` when there is no such value.
    fn text(&self, placeholder: &str) -> Option<String> {
        let (name, format) = placeholder.split_once(':').unwrap_or((placeholder, ""));
        match (self.values.get(name)?, format) {
            (Value::String(text), "") => Some(text.clone()),
            (Value::Number(number), "") => Some(number.to_string()),
            (Value::Number(number), "thousands") => Some(thousands(u32::try_from(number.as_u64()?).ok()?)),
            _ => None,
        }
    }

    /// Replaces the placeholders. Unknown ones stay in the text, where a test finds them.
    fn fill(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((placeholder, after)) = after.split_once('}') else { break };
            filled.push_str(before);
            filled.push_str(&self.text(placeholder).unwrap_or_else(|| format!("{{{placeholder}}}")));
            rest = after;
        }
        filled + rest
    }
}

impl Template {
    pub(super) fn render(&self, facts: Facts) -> Article {
        let mut facts = facts.with("country", COUNTRY);
        let title = facts.fill(self.title);
        for phrase in &self.phrases {
            let (name, text) = phrase.evaluate(&title, &facts);
            facts = facts.with(name, text);
        }
        Article {
            title,
            kind: self.kind,
            summary: facts.fill(self.summary),
            facts: self.facts.iter().map(|(name, value)| (*name, facts.fill(value))).collect(),
            sections: self.sections.iter().map(|section| section.render(&facts)).collect(),
        }
    }
}

impl Phrase {
    fn evaluate(&self, title: &str, facts: &Facts) -> (&'static str, String) {
        match self {
            Self::Condition { name, value, then, otherwise } => {
                (name, facts.fill(if facts.is_present(value) { then } else { otherwise }))
            }
            Self::Variant { name, salt, any_of } => (name, variant(title, *salt, any_of).to_owned()),
            Self::List { name, each, item } => {
                let items: Vec<String> = facts.list(each).iter().map(|facts| facts.fill(item)).collect();
                (name, enumerate(&items))
            }
        }
    }
}

impl SectionTemplate {
    fn render(&self, facts: &Facts) -> Section {
        let mut blocks: Vec<Block> =
            self.paragraphs.iter().map(|paragraph| Block::Text(facts.fill(paragraph))).collect();
        if let Some(table) = &self.table {
            let row = |facts: &Facts| table.row.iter().map(|cell| facts.fill(cell)).collect();
            let rows = facts.list(table.each).iter().map(row).collect();
            blocks.push(Block::Table { head: table.head.clone(), rows });
        }
        Section { title: self.title, blocks }
    }
}

/// Joins items to a text: `a`, `a and b`, `a, b and c`.
fn enumerate(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Chooses a variant by a hash of title and salt, so that the choice never changes.
fn variant(title: &str, salt: u32, variants: &[&'static str]) -> &'static str {
    let hash = title
        .bytes()
        .fold(salt.wrapping_mul(2_654_435_761), |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
    variants.get((hash >> 7) as usize % variants.len().max(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled() {
        let facts = Facts::default().with("name", "Lune").with("length", 1268);
        assert_eq!(facts.fill("The {name}: {length:thousands} km ({length})"), "The Lune: 1,268 km (1268)");
        assert_eq!(facts.fill("an {unknown} and an {open"), "an {unknown} and an {open");
    }

    #[test]
    fn items_are_joined_with_commas_and_and() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!([0, 1, 2, 3].map(|n| enumerate(&items[..n])), ["", "a", "a and b", "a, b and c"]);
    }
}
