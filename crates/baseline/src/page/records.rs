//! Finds lists on a page: repeated blocks of lines, each of which begins with the name of a link (a product and its
//! price, a job and its company).

use std::collections::HashMap;

use super::Page;

/// An item of a list: its name and the lines below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
}

impl Record {
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Possible numbers of lines in a block.
const BLOCK_LENGTHS: std::ops::RangeInclusive<usize> = 2..=12;

/// Returns the items of the most frequent kind of block, or nothing if no block repeats.
pub(crate) fn records(page: &Page) -> Vec<Record> {
    let starts = block_starts(page);
    let Some(length) = most_frequent_length(page, &starts) else { return Vec::new() };
    let Some(first) = starts.windows(2).find(|two| two[1] - two[0] == length).map(|two| two[0]) else {
        return Vec::new();
    };
    let shape = |start: usize| page.lines.get(start..start + length).map(shape_of);
    let expected = shape(first);
    let matches = |start: usize| {
        shape(start).zip(expected.as_ref()).is_some_and(|(shape, expected)| is_similar(&shape, expected))
    };
    let record = |start: usize| Record {
        name: page.lines[start].clone(),
        lines: page.lines[start + 1..start + length].to_vec(),
    };
    let mut found = Vec::new();
    let mut next = first;
    // Links outside the viewport are not listed as elements, but their blocks have the same shape.
    while next + length <= page.lines.len() && (starts.contains(&next) || matches(next)) {
        found.push(record(next));
        next += length;
    }
    // There may be more blocks above the viewport.
    let mut above = first;
    while above >= length && matches(above - length) {
        above -= length;
        found.insert(0, record(above));
    }
    found
}

/// Returns which lines of a block contain numbers.
fn shape_of(lines: &[String]) -> Vec<bool> {
    lines.iter().map(|line| has_digit(line)).collect()
}

/// Whether two shapes agree in the name and in three of four lines: `Only 3 left` may replace `In stock`.
fn is_similar(first: &[bool], second: &[bool]) -> bool {
    let different = first.iter().zip(second).filter(|(a, b)| a != b).count();
    first.first() == second.first() && different <= first.len() / 4
}

fn has_digit(line: &str) -> bool {
    line.contains(|c: char| c.is_ascii_digit())
}

/// Returns the lines that are the name of a visible link. Links and lines have the same order, which separates a link's line
/// from the same text elsewhere.
fn block_starts(page: &Page) -> Vec<usize> {
    let names: Vec<&str> =
        page.links().map(|link| link.text.as_str()).filter(|text| !text.is_empty()).collect();
    let line_of = |name: &str, from: usize| {
        page.lines.iter().skip(from).position(|line| line == name).map(|index| from + index)
    };
    let mut found = Vec::new();
    let mut from = 0;
    for (index, name) in names.iter().enumerate() {
        let Some(start) = line_of(name, from) else { continue };
        // A line after those of the following links is another occurrence of the same text.
        let skips_links = names[index + 1..]
            .iter()
            .take(2)
            .any(|next| line_of(next, from).is_some_and(|line| line < start));
        if !skips_links {
            found.push(start);
            from = start + 1;
        }
    }
    found
}

/// Returns the most frequent distance between names, counting only blocks that contain numbers.
fn most_frequent_length(page: &Page, starts: &[usize]) -> Option<usize> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for two in starts.windows(2) {
        let between = &page.lines[two[0] + 1..two[1]];
        if BLOCK_LENGTHS.contains(&(two[1] - two[0])) && between.iter().any(|line| has_digit(line)) {
            *counts.entry(two[1] - two[0]).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .max_by_key(|(length, count)| (*count, std::cmp::Reverse(*length)))
        .map(|(length, _)| length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_extends_beyond_the_viewport() {
        let elements =
            "id: 1, text: Home, tag: a\nid: 2, text: Oak table, tag: a\nid: 3, text: Pine chair, tag: a";
        let text = "Home\nAll things\nElm stool\nMaker\n$10\nThere\nOak table\nMaker\n$90\nThere\nPine chair\nOther\n$40\nThere\n\
                    Ash bench\nMaker\n$55\nOnly 3 left\nThe end";
        let found = records(&Page::new("", "", elements, Some(text)));
        let names: Vec<_> = found.iter().map(|record| record.name.as_str()).collect();
        assert_eq!(names, ["Elm stool", "Oak table", "Pine chair", "Ash bench"]);
        assert_eq!(found[1].text(), "Maker\n$90\nThere");
    }

    #[test]
    fn menu_is_not_a_list() {
        let elements = "id: 1, text: Home, tag: a\nid: 2, text: News, tag: a\nid: 3, text: Help, tag: a";
        assert!(records(&Page::new("", "", elements, Some("Home\nNews\nHelp\nWelcome"))).is_empty());
        assert!(records(&Page::default()).is_empty());
    }
}
