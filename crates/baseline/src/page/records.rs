//! Lists of things: blocks of lines that repeat, each beginning with the name of a link (a product and its price, a job
//! and its company).

use std::collections::HashMap;

use super::Page;

/// One thing of a list: its name and the lines that belong to it.
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

/// A block has more than its name and less than a page.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=12;

/// The list on a page that repeats most often. Empty when nothing does.
pub(crate) fn records(page: &Page) -> Vec<Record> {
    let starts = starts(page);
    let Some(stride) = usual_stride(page, &starts) else { return Vec::new() };
    let Some(first) = starts.windows(2).find(|two| two[1] - two[0] == stride).map(|two| two[0]) else {
        return Vec::new();
    };
    let shape = |at: usize| {
        page.lines
            .get(at..at + stride)
            .map(|lines| lines.iter().map(|line| has_digit(line)).collect::<Vec<_>>())
    };
    let wanted = shape(first);
    let mut found = Vec::new();
    let mut at = first;
    // Links further down are not listed while they are out of sight; the blocks themselves go on in the same form.
    while at + stride <= page.lines.len() && (starts.contains(&at) || shape(at) == wanted) {
        found.push(Record { name: page.lines[at].clone(), lines: page.lines[at + 1..at + stride].to_vec() });
        at += stride;
    }
    // Above the first block in sight there may be others.
    let mut above = first;
    while above >= stride && shape(above - stride) == wanted {
        above -= stride;
        found.insert(
            0,
            Record { name: page.lines[above].clone(), lines: page.lines[above + 1..above + stride].to_vec() },
        );
    }
    found
}

fn has_digit(line: &str) -> bool {
    line.contains(|sign: char| sign.is_ascii_digit())
}

/// Lines that are the name of a link in sight.
fn starts(page: &Page) -> Vec<usize> {
    let names: Vec<&str> =
        page.links().map(|link| link.text.as_str()).filter(|text| !text.is_empty()).collect();
    page.lines
        .iter()
        .enumerate()
        .filter(|(_, line)| names.contains(&line.as_str()))
        .map(|(place, _)| place)
        .collect()
}

/// The distance between names that occurs most often, when the lines between them hold numbers.
fn usual_stride(page: &Page, starts: &[usize]) -> Option<usize> {
    let mut often: HashMap<usize, usize> = HashMap::new();
    for two in starts.windows(2) {
        let between = &page.lines[two[0] + 1..two[1]];
        if LENGTHS.contains(&(two[1] - two[0])) && between.iter().any(|line| has_digit(line)) {
            *often.entry(two[1] - two[0]).or_default() += 1;
        }
    }
    often
        .into_iter()
        .max_by_key(|(stride, count)| (*count, std::cmp::Reverse(*stride)))
        .map(|(stride, _)| stride)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_on_out_of_sight() {
        let tree =
            "id: 1, text: Home, tag: a\nid: 2, text: Oak table, tag: a\nid: 3, text: Pine chair, tag: a";
        let text = "Home\nAll things\nElm stool\nMaker\n$10\nOak table\nMaker\n$90\nPine chair\nOther\n$40\nAsh bench\nMaker\n$55\nThe end";
        let found = records(&Page::new("", "", tree, Some(text)));
        let names: Vec<_> = found.iter().map(|record| record.name.as_str()).collect();
        assert_eq!(names, ["Elm stool", "Oak table", "Pine chair", "Ash bench"]);
        assert_eq!(found[1].text(), "Maker\n$90");
    }

    #[test]
    fn a_menu_is_no_list() {
        let tree = "id: 1, text: Home, tag: a\nid: 2, text: News, tag: a\nid: 3, text: Help, tag: a";
        assert!(records(&Page::new("", "", tree, Some("Home\nNews\nHelp\nWelcome"))).is_empty());
        assert!(records(&Page::default()).is_empty());
    }
}
