//! Tables and label–value pairs in the text of a page.

use super::{Page, Role};
use crate::{values, words};

/// A label and what stands beside or below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) label: String,
    pub(crate) stems: Vec<String>,
    pub(crate) value: String,
    /// On one line, not merely on the next one.
    pub(crate) sure: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Cells of a table's row.
fn cells(line: &str) -> Vec<&str> {
    line.split(['\t', '|']).map(str::trim).collect()
}

fn pair(label: &str, value: &str, sure: bool) -> Pair {
    Pair { label: label.to_owned(), stems: words::stems(label), value: value.to_owned(), sure }
}

/// Whatever can be read as a label with its value: two cells, `label: value`, or a short line above another.
pub(crate) fn pairs(page: &Page) -> Vec<Pair> {
    let lines = &page.lines;
    let pressed = |line: &str| {
        page.elements.iter().any(|element| {
            matches!(element.role, Role::Link | Role::Button | Role::Option | Role::Tick)
                && element.text == line
        })
    };
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let cells = cells(line);
        if let [label, value] = cells.as_slice() {
            if !label.is_empty() && !value.is_empty() {
                found.push(pair(label, value, true));
            }
        } else if let Some((label, value)) = line.split_once(": ") {
            if is_label(label) && !value.trim().is_empty() {
                found.push(pair(label, value.trim(), true));
            }
        } else if let Some(next) = lines.get(place + 1)
            && page.has_text
            && cells.len() == 1
            && is_label(line)
            && !next.contains(['\t', '|'])
            && !pressed(line)
        {
            found.push(pair(line.trim_end_matches(':'), next, false));
        }
    }
    found
}

/// Few words and no number.
fn is_label(text: &str) -> bool {
    let count = text.split_whitespace().count();
    (1..=4).contains(&count)
        && !text.contains(|sign: char| sign.is_ascii_digit())
        && !text.ends_with(['.', '!', '?'])
}

/// Runs of rows with the same number of cells, of which the first is a head: no numbers in it, some below it.
pub(crate) fn tables(lines: &[String]) -> Vec<Table> {
    let mut found = Vec::new();
    let mut place = 0;
    while place < lines.len() {
        let head = cells(&lines[place]);
        let length = lines[place..]
            .iter()
            .take_while(|line| head.len() > 1 && cells(line).len() == head.len())
            .count();
        if length > 2 && is_head(&head) {
            let rows: Vec<Vec<String>> =
                lines[place + 1..place + length].iter().map(|line| owned(&cells(line))).collect();
            if rows
                .iter()
                .flatten()
                .any(|cell| cell.starts_with(|sign: char| sign.is_ascii_digit() || sign == '$'))
            {
                found.push(Table { head: owned(&head), rows });
            }
        }
        place += length.max(1);
    }
    found
}

fn is_head(cells: &[&str]) -> bool {
    cells.iter().all(|cell| {
        !cell.is_empty() && cell.len() <= 40 && !cell.contains(|sign: char| sign.is_ascii_digit())
    })
}

fn owned(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

impl Table {
    /// The column whose head fits one of these stems best; the column of names only when its own word is asked for.
    pub(crate) fn column(&self, stems: &[String]) -> Option<usize> {
        let fits = |head: &String| {
            let words = words::stems(head);
            stems.iter().any(|stem| words.iter().any(|word| words::alike(stem, word)))
        };
        self.head.iter().position(fits)
    }

    /// Same, but a column of numbers; earlier stems count more.
    pub(crate) fn number_column(&self, stems: &[String]) -> Option<usize> {
        let numeric = |column: &usize| {
            let numbers = self
                .rows
                .iter()
                .filter(|row| row.get(*column).is_some_and(|cell| leading(cell).is_some()))
                .count();
            numbers * 3 >= self.rows.len() * 2
        };
        let columns: Vec<usize> = (0..self.head.len()).filter(numeric).collect();
        stems.iter().find_map(|stem| {
            let fits = |column: &&usize| {
                words::stems(&self.head[**column]).iter().any(|word| words::alike(stem, word))
            };
            columns.iter().find(fits).copied()
        })
    }

    /// What the numbers of a column are: `km` under `Length (km)`.
    pub(crate) fn unit(&self, column: usize) -> Option<&str> {
        let (_, behind) = self.head.get(column)?.split_once('(')?;
        behind.split_once(')').map(|(unit, _)| unit.trim()).filter(|unit| !unit.is_empty())
    }
}

/// The number a cell starts with.
pub(crate) fn leading(cell: &str) -> Option<f64> {
    let starts = cell.starts_with(|sign: char| sign.is_ascii_digit() || "$€£".contains(sign));
    starts.then(|| values::amounts(cell).first().map(|amount| amount.value)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn pairs_are_found_beside_and_below() {
        let text = "Colour\tVelvet\nAnswer: done\nTotal\n$105.50\nA long line of text that is no label at all.\nMenu\nHome";
        let found = pairs(&Page::new("", "", "id: 1, text: Menu, tag: a", Some(text)));
        let sure: Vec<_> = found
            .iter()
            .filter(|pair| pair.sure)
            .map(|pair| (pair.label.as_str(), pair.value.as_str()))
            .collect();
        assert_eq!(sure, [("Colour", "Velvet"), ("Answer", "done")]);
        assert!(found.iter().any(|pair| pair.label == "Total" && pair.value == "$105.50" && !pair.sure));
        assert!(!found.iter().any(|pair| pair.label.starts_with("A long") || pair.label == "Menu"));
    }

    #[test]
    fn tables_have_a_head_and_numbers() {
        let found = tables(&lines(
            "River | Length (km) | Mouth\nNile | 6,650 | sea\nRhine | 1,230 | sea\nEnd\nColour | Red\nSize | Big\nForm | Odd",
        ));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rows.len(), found[0].number_column(&[words::stem("long")])), (2, Some(1)));
        assert_eq!(found[0].column(&[words::stem("river")]), Some(0));
        assert_eq!((found[0].unit(1), found[0].unit(0)), (Some("km"), None));
    }

    #[test]
    fn cells_start_with_their_number() {
        assert_eq!((leading("1,240 km"), leading("$5"), leading("about 5")), (Some(1240.0), Some(5.0), None));
    }
}
