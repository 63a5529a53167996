//! Ranks the rows of a table or the items of a list by a number, and computes sums and differences.

use crate::{
    goal::{Arithmetic, Bound, Goal, Superlative},
    nlp,
    page::{Record, Table, leading_number},
    values::{self, format_grouped},
};

/// A row or item with the value it is ranked by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: f64,
    /// The value as the page shows it.
    pub(super) written: String,
    /// The cells of the row, or the lines of the item.
    pub(super) cells: Vec<String>,
}

/// Returns the rows of a table with the value that the superlative is about.
pub(super) fn table_entries(goal: &Goal, table: &Table, superlative: &Superlative) -> Vec<Entry> {
    let column =
        table.number_column(&superlative.explicit).or_else(|| table.number_column(&superlative.implied));
    let Some(column) = column.filter(|_| contains_compared_things(goal, table, superlative)) else {
        return Vec::new();
    };
    let asked_column = table.column(&goal.noun).filter(|asked| *asked != column);
    let is_text = |column: usize| {
        table.rows.iter().all(|row| row.get(column).is_some_and(|cell| leading_number(cell).is_none()))
    };
    let name_column = asked_column
        .filter(|column| is_text(*column))
        .or_else(|| (0..table.head.len()).find(|column| is_text(*column)));
    let Some(name_column) = name_column else { return Vec::new() };
    let entry = |row: &Vec<String>| {
        let cell = row.get(column)?;
        let written = table.unit(column).map_or_else(|| cell.clone(), |unit| format!("{cell} {unit}"));
        Some(Entry {
            name: row.get(name_column)?.clone(),
            value: leading_number(cell)?,
            written,
            cells: row.clone(),
        })
    };
    table.rows.iter().filter_map(entry).collect()
}

/// Whether the table is about the things that the task compares: a table of regions does not answer a question for
/// cities.
fn contains_compared_things(goal: &Goal, table: &Table, superlative: &Superlative) -> bool {
    let things: Vec<&String> = superlative
        .explicit
        .iter()
        .filter(|stem| table.number_column(&[(*stem).clone()]).is_none())
        .collect();
    let is_in_head = |stem: &&String| table.head.iter().any(|head| nlp::stems(head).contains(stem));
    things.is_empty() || things.iter().any(is_in_head) || goal.noun.iter().any(|stem| is_in_head(&stem))
}

/// Returns the items of a list with the value that the superlative is about.
pub(super) fn list_entries(records: &[Record], superlative: &Superlative) -> Vec<Entry> {
    let is_about = |word: &str| {
        let word = nlp::stem(word);
        superlative.explicit.iter().chain(&superlative.implied).any(|stem| nlp::stems_match(stem, &word))
    };
    let by_price = is_about("price") || is_about("salary");
    let (by_rating, by_date) = (is_about("rating"), is_about("posted"));
    let entry = |record: &Record| {
        let (value, written) = if by_rating {
            record.lines.iter().find_map(|line| rating(line))?
        } else if by_date {
            record.lines.iter().find_map(|line| date_value(line))?
        } else if by_price {
            price(record, superlative.largest)?
        } else {
            return None;
        };
        Some(Entry { name: record.name.clone(), value, written, cells: record.lines.clone() })
    };
    records.iter().filter_map(entry).collect()
}

/// Returns the price. For a price range: the upper end if `largest`, otherwise the lower.
fn price(record: &Record, largest: bool) -> Option<(f64, String)> {
    let all = values::amounts(&record.text()).into_iter().filter(|amount| amount.is_money);
    let by_value = |a: &values::Amount, b: &values::Amount| a.value.total_cmp(&b.value);
    let found = if largest { all.max_by(by_value) } else { all.min_by(by_value) }?;
    Some((found.value, found.text))
}

/// Parses `★★★★☆ 4.5 (212 reviews)`, `4.5 / 5` or `4.5 out of 5`.
fn rating(line: &str) -> Option<(f64, String)> {
    let has_scale = line.contains(['★', '☆', '⭐'])
        || line.contains("/ 5")
        || line.contains("/5")
        || line.contains("out of 5");
    let lower = line.to_lowercase();
    let is_named = lower.contains("rating") || lower.contains("rated") || lower.contains("stars");
    let amount = values::amounts(line).into_iter().find(|amount| amount.value <= 10.0)?;
    (has_scale || is_named).then_some((amount.value, amount.text))
}

/// Returns the first date of a line as a number that can be compared.
fn date_value(line: &str) -> Option<(f64, String)> {
    let (date, written) = values::dates(line).into_iter().next()?;
    Some((f64::from(date.year * 10_000 + date.month * 100 + date.day), written))
}

pub(super) fn sort_best_first(mut entries: Vec<Entry>, largest: bool) -> Vec<Entry> {
    entries.sort_by(|a, b| {
        let order = a.value.total_cmp(&b.value);
        if largest { order.reverse() } else { order }
    });
    entries
}

/// Computes the sum or difference that the task asks for, in the format of the entries.
pub(super) fn compute(goal: &Goal, entries: &[Entry]) -> Option<String> {
    let sample = entries.first()?;
    let total = match (goal.arithmetic?, goal.superlatives.as_slice()) {
        (Arithmetic::Sum, [superlative]) => {
            let best = sort_best_first(entries.to_vec(), superlative.largest);
            best.get(..superlative.count).map(|best| best.iter().map(|entry| entry.value).sum::<f64>())?
        }
        (Arithmetic::Difference, [first, second]) if first.largest != second.largest => {
            let best = sort_best_first(entries.to_vec(), true);
            best.first()?.value - best.last()?.value
        }
        _ => return None,
    };
    Some(format_like(total, &sample.written))
}

/// Formats a value with the currency or unit of a sample.
fn format_like(value: f64, sample: &str) -> String {
    let amount = values::amounts(sample).into_iter().next();
    let currency = sample.chars().next().filter(|c| "$€£¥".contains(*c));
    match (currency, amount) {
        (Some(currency), _) if sample.contains('.') => {
            let cents = format_grouped(value);
            let cents = if cents.contains('.') { cents } else { format!("{cents}.00") };
            format!("{currency}{cents}")
        }
        (Some(currency), _) => format!("{currency}{}", format_grouped(value)),
        (None, Some(amount)) if !amount.unit.is_empty() => {
            format!("{} {}", format_grouped(value), amount.unit)
        }
        _ => format_grouped(value),
    }
}

/// Removes the entries that the limits of the task exclude; `None` if a limit cannot be checked.
pub(super) fn apply_limits(goal: &Goal, table: &Table, entries: Vec<Entry>) -> Option<Vec<Entry>> {
    let mut remaining = entries;
    for limit in &goal.limits {
        let Bound::Number { value: bound, .. } = &limit.bound else { return None };
        let column = table.number_column(&limit.nearby_stems)?;
        remaining.retain(|entry| {
            let value = entry.cells.get(column).and_then(|cell| leading_number(cell));
            value.is_some_and(|value| if limit.is_upper { value <= *bound } else { value >= *bound })
        });
    }
    Some(remaining)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tables;

    fn rivers() -> Table {
        let text = "River | Length (km) | Mouth\nNile | 6,650 | sea\nRhine | 1,230 | sea\nMain | 525 | Rhine";
        tables(&text.lines().map(str::to_owned).collect::<Vec<_>>()).remove(0)
    }

    fn ranked(task: &str) -> (Goal, Vec<Entry>) {
        let goal = Goal::parse(task);
        let entries = table_entries(&goal, &rivers(), &goal.superlatives[0]);
        (goal, entries)
    }

    #[test]
    fn tables_are_ranked_by_the_right_column() {
        let (goal, entries) = ranked("Which is the second longest river?");
        let best = sort_best_first(entries, goal.superlatives[0].largest);
        assert_eq!(best[goal.superlatives[0].rank - 1].name, "Rhine");
    }

    #[test]
    fn sums_and_differences_are_computed() {
        let (goal, entries) = ranked("How long are the two longest rivers together?");
        assert_eq!(compute(&goal, &entries).as_deref(), Some("7,880 km"));
        let (goal, entries) = ranked("By how many km is the longest river longer than the shortest?");
        assert_eq!(
            compute(
                &Goal {
                    superlatives: goal
                        .superlatives
                        .into_iter()
                        .filter(|superlative| superlative.rank == 1)
                        .take(3)
                        .collect(),
                    ..goal
                },
                &entries
            ),
            None
        );
    }

    #[test]
    fn lists_are_ranked_by_price_rating_and_date() {
        let record = |name: &str, lines: &str| Record {
            name: name.into(),
            lines: lines.lines().map(str::to_owned).collect(),
        };
        let list = [
            record("A", "★★★★☆ 4.5 (9 reviews)\n$20 – $30\nPosted 1 May 2025"),
            record("B", "★★★★★ 4.8 (2 reviews)\n$10 – $50\nPosted 2 April 2025"),
        ];
        for (task, expected) in
            [("the cheapest", "B"), ("the most expensive", "B"), ("the best rated", "B"), ("the newest", "A")]
        {
            let superlative = Goal::parse(task).superlatives.remove(0);
            assert_eq!(
                sort_best_first(list_entries(&list, &superlative), superlative.largest)[0].name,
                expected,
                "{task}"
            );
        }
    }

    #[test]
    fn limits_exclude_rows() {
        let goal = Goal::parse("Which is the shortest river with a length over 600 km?");
        let entries =
            apply_limits(&goal, &rivers(), table_entries(&goal, &rivers(), &goal.superlatives[0])).unwrap();
        assert_eq!(sort_best_first(entries, false)[0].name, "Rhine");
    }
}
