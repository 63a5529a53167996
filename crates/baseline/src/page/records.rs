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
    let shape = |at: usize| page.lines.get(at..at + stride).map(shape_of);
    let wanted = shape(first);
    let alike =
        |at: usize| shape(at).zip(wanted.as_ref()).is_some_and(|(shape, wanted)| is_alike(&shape, wanted));
    let record =
        |at: usize| Record { name: page.lines[at].clone(), lines: page.lines[at + 1..at + stride].to_vec() };
    let mut found = Vec::new();
    let mut at = first;
    // Links further down are not listed while they are out of sight; the blocks themselves go on in the same form.
    while at + stride <= page.lines.len() && (starts.contains(&at) || alike(at)) {
        found.push(record(at));
        at += stride;
    }
    // Above the first block in sight there may be others.
    let mut above = first;
    while above >= stride && alike(above - stride) {
        above -= stride;
        found.insert(0, record(above));
    }
    found
}

/// Which lines of a block hold numbers.
fn shape_of(lines: &[String]) -> Vec<bool> {
    lines.iter().map(|line| has_digit(line)).collect()
}

/// One line in four may differ: `Only 3 left` instead of `In stock`. The name may not.
fn is_alike(one: &[bool], other: &[bool]) -> bool {
    let different = one.iter().zip(other).filter(|(one, other)| one != other).count();
    one.first() == other.first() && different <= one.len() / 4
}

fn has_digit(line: &str) -> bool {
    line.contains(|sign: char| sign.is_ascii_digit())
}

/// Lines that are the name of a link in sight. Links and lines come in the same order, so a word that is the name of one
/// link does not pass for it further down.
fn starts(page: &Page) -> Vec<usize> {
    let names: Vec<&str> =
        page.links().map(|link| link.text.as_str()).filter(|text| !text.is_empty()).collect();
    let line_of = |name: &str, from: usize| {
        page.lines.iter().skip(from).position(|line| line == name).map(|at| from + at)
    };
    let mut found = Vec::new();
    let mut from = 0;
    for (place, name) in names.iter().enumerate() {
        let Some(at) = line_of(name, from) else { continue };
        // A jump over the lines of the links that come next would be to some other place of the same words.
        let jumps =
            names[place + 1..].iter().take(2).any(|next| line_of(next, from).is_some_and(|line| line < at));
        if !jumps {
            found.push(at);
            from = at + 1;
        }
    }
    found
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
        let text = "Home\nAll things\nElm stool\nMaker\n$10\nThere\nOak table\nMaker\n$90\nThere\nPine chair\nOther\n$40\nThere\n\
                    Ash bench\nMaker\n$55\nOnly 3 left\nThe end";
        let found = records(&Page::new("", "", tree, Some(text)));
        let names: Vec<_> = found.iter().map(|record| record.name.as_str()).collect();
        assert_eq!(names, ["Elm stool", "Oak table", "Pine chair", "Ash bench"]);
        assert_eq!(found[1].text(), "Maker\n$90\nThere");
    }

    #[test]
    fn a_menu_is_no_list() {
        let tree = "id: 1, text: Home, tag: a\nid: 2, text: News, tag: a\nid: 3, text: Help, tag: a";
        assert!(records(&Page::new("", "", tree, Some("Home\nNews\nHelp\nWelcome"))).is_empty());
        assert!(records(&Page::default()).is_empty());
    }
}
