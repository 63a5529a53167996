//! Finds tables and label–value pairs in the text of a page.

use super::{Page, Role};
use crate::{nlp, values};

/// A label and the value beside or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) label: String,
    pub(crate) stems: Vec<String>,
    pub(crate) value: String,
    /// Whether the value is on the same line as the label.
    pub(crate) same_line: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Splits a table row into its cells.
fn cells(line: &str) -> Vec<&str> {
    line.split(['\t', '|']).map(str::trim).collect()
}

fn pair(label: &str, value: &str, same_line: bool) -> Pair {
    Pair { label: label.to_owned(), stems: nlp::stems(label), value: value.to_owned(), same_line }
}

/// Returns everything that looks like a label with its value: two cells, `label: value`, or a short line above another.
pub(crate) fn pairs(page: &Page) -> Vec<Pair> {
    let lines = &page.lines;
    let is_control = |line: &str| {
        page.elements.iter().any(|element| {
            matches!(element.role, Role::Link | Role::Button | Role::Option | Role::Toggle)
                && element.text == line
        })
    };
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let cells = cells(line);
        if let [label, value] = cells.as_slice() {
            if !label.is_empty() && !value.is_empty() {
                found.push(pair(label, value, true));
            }
        } else if let Some((label, value)) = line.split_once(": ") {
            if is_label(label) && !value.trim().is_empty() {
                found.push(pair(label, value.trim(), true));
            }
        } else if let Some(next) = lines.get(index + 1)
            && page.has_text
            && cells.len() == 1
            && is_label(line)
            && !next.contains(['\t', '|'])
            && !is_control(line)
        {
            found.push(pair(line.trim_end_matches(':'), next, false));
        }
    }
    found
}

/// Whether the text has at most four words, no digit and no end of a sentence.
fn is_label(text: &str) -> bool {
    let count = text.split_whitespace().count();
    (1..=4).contains(&count)
        && !text.contains(|c: char| c.is_ascii_digit())
        && !text.ends_with(['.', '!', '?'])
}

/// Returns the tables: rows with the same number of cells, with a head without numbers and numbers below it.
pub(crate) fn tables(lines: &[String]) -> Vec<Table> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let head = cells(&lines[index]);
        let length = lines[index..]
            .iter()
            .take_while(|line| head.len() > 1 && cells(line).len() == head.len())
            .count();
        if length > 2 && is_head(&head) {
            let rows: Vec<Vec<String>> =
                lines[index + 1..index + length].iter().map(|line| to_strings(&cells(line))).collect();
            if rows.iter().flatten().any(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || c == '$')) {
                found.push(Table { head: to_strings(&head), rows });
            }
        }
        index += length.max(1);
    }
    found
}

fn is_head(cells: &[&str]) -> bool {
    cells
        .iter()
        .all(|cell| !cell.is_empty() && cell.len() <= 40 && !cell.contains(|c: char| c.is_ascii_digit()))
}

fn to_strings(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

impl Table {
    /// Returns the first column whose head matches one of the stems.
    pub(crate) fn column(&self, stems: &[String]) -> Option<usize> {
        let matches = |head: &String| {
            let words = nlp::stems(head);
            stems.iter().any(|stem| words.iter().any(|word| nlp::stems_match(stem, word)))
        };
        self.head.iter().position(matches)
    }

    /// Returns a column of numbers whose head matches one of the stems; earlier stems take precedence.
    pub(crate) fn number_column(&self, stems: &[String]) -> Option<usize> {
        let is_numeric = |column: &usize| {
            let numbers = self
                .rows
                .iter()
                .filter(|row| row.get(*column).is_some_and(|cell| leading_number(cell).is_some()))
                .count();
            numbers * 3 >= self.rows.len() * 2
        };
        let columns: Vec<usize> = (0..self.head.len()).filter(is_numeric).collect();
        stems.iter().find_map(|stem| {
            let matches = |column: &&usize| {
                nlp::stems(&self.head[**column]).iter().any(|word| nlp::stems_match(stem, word))
            };
            columns.iter().find(matches).copied()
        })
    }

    /// Returns the unit of a column: `km` for the head `Length (km)`.
    pub(crate) fn unit(&self, column: usize) -> Option<&str> {
        let (_, after) = self.head.get(column)?.split_once('(')?;
        after.split_once(')').map(|(unit, _)| unit.trim()).filter(|unit| !unit.is_empty())
    }
}

/// Returns the number at the start of a cell.
pub(crate) fn leading_number(cell: &str) -> Option<f64> {
    let starts_with_number = cell.starts_with(|c: char| c.is_ascii_digit() || "$€£".contains(c));
    starts_with_number.then(|| values::amounts(cell).first().map(|amount| amount.value)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn values_are_found_beside_and_below_labels() {
        let text = "Colour\tVelvet\nAnswer: done\nTotal\n$105.50\nA long line of text that is no label at all.\nMenu\nHome";
        let found = pairs(&Page::new("", "", "id: 1, text: Menu, tag: a", Some(text)));
        let same_line: Vec<_> = found
            .iter()
            .filter(|pair| pair.same_line)
            .map(|pair| (pair.label.as_str(), pair.value.as_str()))
            .collect();
        assert_eq!(same_line, [("Colour", "Velvet"), ("Answer", "done")]);
        assert!(found.iter().any(|pair| pair.label == "Total" && pair.value == "$105.50" && !pair.same_line));
        assert!(!found.iter().any(|pair| pair.label.starts_with("A long") || pair.label == "Menu"));
    }

    #[test]
    fn tables_need_head_and_numbers() {
        let found = tables(&lines(
            "River | Length (km) | Mouth\nNile | 6,650 | sea\nRhine | 1,230 | sea\nEnd\nColour | Red\nSize | Big\nForm | Odd",
        ));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rows.len(), found[0].number_column(&[nlp::stem("long")])), (2, Some(1)));
        assert_eq!(found[0].column(&[nlp::stem("river")]), Some(0));
        assert_eq!((found[0].unit(1), found[0].unit(0)), (Some("km"), None));
    }

    #[test]
    fn leading_number_is_parsed() {
        assert_eq!(
            (leading_number("1,240 km"), leading_number("$5"), leading_number("about 5")),
            (Some(1240.0), Some(5.0), None)
        );
    }
}
