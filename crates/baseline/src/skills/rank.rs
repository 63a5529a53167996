//! Comparing the rows of a table or the things of a list by a number, and picking or adding up.

use crate::{
    goal::{Arithmetic, Bound, Extreme, Goal},
    page::{Record, Table, leading},
    values::{self, grouped},
    words,
};

/// Something that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: f64,
    /// The value as it is written.
    pub(super) written: String,
    /// All that is known about it.
    pub(super) cells: Vec<String>,
}

/// The rows of a table by the column that the superlative is about.
pub(super) fn rows(goal: &Goal, table: &Table, extreme: &Extreme) -> Vec<Entry> {
    let column = table.number_column(&extreme.said).or_else(|| table.number_column(&extreme.meant));
    let Some(column) = column.filter(|_| is_of_kind(goal, table, extreme)) else { return Vec::new() };
    let asked = table.column(&goal.noun).filter(|asked| *asked != column);
    let is_name = |place: usize| {
        table.rows.iter().all(|row| row.get(place).is_some_and(|cell| leading(cell).is_none()))
    };
    let named =
        asked.filter(|place| is_name(*place)).or_else(|| (0..table.head.len()).find(|place| is_name(*place)));
    let Some(named) = named else { return Vec::new() };
    let entry = |row: &Vec<String>| {
        let cell = row.get(column)?;
        let written = table.unit(column).map_or_else(|| cell.clone(), |unit| format!("{cell} {unit}"));
        Some(Entry { name: row.get(named)?.clone(), value: leading(cell)?, written, cells: row.clone() })
    };
    table.rows.iter().filter_map(entry).collect()
}

/// When the task says what is compared, the table must be one of these: `cities` are not in a table of regions.
fn is_of_kind(goal: &Goal, table: &Table, extreme: &Extreme) -> bool {
    let said: Vec<&String> =
        extreme.said.iter().filter(|stem| table.number_column(&[(*stem).clone()]).is_none()).collect();
    let named = |stem: &&String| table.head.iter().any(|head| words::stems(head).contains(stem));
    said.is_empty() || said.iter().any(named) || goal.noun.iter().any(|stem| named(&stem))
}

/// The things of a list by what the superlative is about.
pub(super) fn things(records: &[Record], extreme: &Extreme) -> Vec<Entry> {
    let about = |word: &str| {
        let word = words::stem(word);
        extreme.said.iter().chain(&extreme.meant).any(|stem| words::alike(stem, &word))
    };
    let money = about("price") || about("salary");
    let (rating, day) = (about("rating"), about("posted"));
    let entry = |record: &Record| {
        let (value, written) = if rating {
            record.lines.iter().find_map(|line| stars(line))?
        } else if day {
            record.lines.iter().find_map(|line| newest(line))?
        } else if money {
            price(record, extreme.largest)?
        } else {
            return None;
        };
        Some(Entry { name: record.name.clone(), value, written, cells: record.lines.clone() })
    };
    records.iter().filter_map(entry).collect()
}

/// Of a range the end that matters.
fn price(record: &Record, largest: bool) -> Option<(f64, String)> {
    let all = values::amounts(&record.text()).into_iter().filter(|amount| amount.money);
    let order = |one: &values::Amount, other: &values::Amount| one.value.total_cmp(&other.value);
    let found = if largest { all.max_by(order) } else { all.min_by(order) }?;
    Some((found.value, found.text))
}

/// `★★★★☆ 4.5 (212 reviews)`, `4.5 / 5`, `4.5 out of 5`.
fn stars(line: &str) -> Option<(f64, String)> {
    let rated = line.contains(['★', '☆', '⭐'])
        || line.contains("/ 5")
        || line.contains("/5")
        || line.contains("out of 5");
    let lower = line.to_lowercase();
    let named = lower.contains("rating") || lower.contains("rated") || lower.contains("stars");
    let amount = values::amounts(line).into_iter().find(|amount| amount.value <= 10.0)?;
    (rated || named).then_some((amount.value, amount.text))
}

fn newest(line: &str) -> Option<(f64, String)> {
    let (date, written) = values::dates(line).into_iter().next()?;
    Some((f64::from(date.year * 10_000 + date.month * 100 + date.day), written))
}

/// Best first.
pub(super) fn ordered(mut entries: Vec<Entry>, largest: bool) -> Vec<Entry> {
    entries.sort_by(|one, other| {
        let order = one.value.total_cmp(&other.value);
        if largest { order.reverse() } else { order }
    });
    entries
}

/// What a sum or a difference over the entries comes to, in the form the entries are written.
pub(super) fn computed(goal: &Goal, entries: &[Entry]) -> Option<String> {
    let like = entries.first()?;
    let total = match (goal.arithmetic?, goal.extremes.as_slice()) {
        (Arithmetic::Sum, [extreme]) => {
            let best = ordered(entries.to_vec(), extreme.largest);
            best.get(..extreme.count).map(|best| best.iter().map(|entry| entry.value).sum::<f64>())?
        }
        (Arithmetic::Difference, [one, other]) if one.largest != other.largest => {
            let best = ordered(entries.to_vec(), true);
            best.first()?.value - best.last()?.value
        }
        _ => return None,
    };
    Some(written_like(total, &like.written))
}

fn written_like(value: f64, written: &str) -> String {
    let amount = values::amounts(written).into_iter().next();
    let sign = written.chars().next().filter(|sign| "$€£¥".contains(*sign));
    match (sign, amount) {
        (Some(sign), _) if written.contains('.') => {
            let cents = grouped(value);
            let cents = if cents.contains('.') { cents } else { format!("{cents}.00") };
            format!("{sign}{cents}")
        }
        (Some(sign), _) => format!("{sign}{}", grouped(value)),
        (None, Some(amount)) if !amount.unit.is_empty() => format!("{} {}", grouped(value), amount.unit),
        _ => grouped(value),
    }
}

/// Drops what a limit of the task excludes. `None` when a limit cannot be checked.
pub(super) fn within(goal: &Goal, table: &Table, entries: Vec<Entry>) -> Option<Vec<Entry>> {
    let mut left = entries;
    for limit in &goal.limits {
        let Bound::Number { value: bound, .. } = &limit.bound else { return None };
        let column = table.number_column(&limit.near)?;
        left.retain(|entry| {
            let value = entry.cells.get(column).and_then(|cell| leading(cell));
            value.is_some_and(|value| if limit.upper { value <= *bound } else { value >= *bound })
        });
    }
    Some(left)
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
        let goal = Goal::read(task);
        let entries = rows(&goal, &rivers(), &goal.extremes[0]);
        (goal, entries)
    }

    #[test]
    fn tables_are_compared_by_the_right_column() {
        let (goal, entries) = ranked("Which is the second longest river?");
        let best = ordered(entries, goal.extremes[0].largest);
        assert_eq!(best[goal.extremes[0].rank - 1].name, "Rhine");
    }

    #[test]
    fn sums_and_differences_come_out() {
        let (goal, entries) = ranked("How long are the two longest rivers together?");
        assert_eq!(computed(&goal, &entries).as_deref(), Some("7,880 km"));
        let (goal, entries) = ranked("By how many km is the longest river longer than the shortest?");
        assert_eq!(
            computed(
                &Goal {
                    extremes: goal.extremes.into_iter().filter(|one| one.rank == 1).take(3).collect(),
                    ..goal
                },
                &entries
            ),
            None
        );
    }

    #[test]
    fn things_are_compared_by_price_stars_and_day() {
        let record = |name: &str, lines: &str| Record {
            name: name.into(),
            lines: lines.lines().map(str::to_owned).collect(),
        };
        let list = [
            record("A", "★★★★☆ 4.5 (9 reviews)\n$20 – $30\nPosted 1 May 2025"),
            record("B", "★★★★★ 4.8 (2 reviews)\n$10 – $50\nPosted 2 April 2025"),
        ];
        for (task, wanted) in
            [("the cheapest", "B"), ("the most expensive", "B"), ("the best rated", "B"), ("the newest", "A")]
        {
            let extreme = Goal::read(task).extremes.remove(0);
            assert_eq!(ordered(things(&list, &extreme), extreme.largest)[0].name, wanted, "{task}");
        }
    }

    #[test]
    fn limits_leave_rows_out() {
        let goal = Goal::read("Which is the shortest river with a length over 600 km?");
        let entries = within(&goal, &rivers(), rows(&goal, &rivers(), &goal.extremes[0])).unwrap();
        assert_eq!(ordered(entries, false)[0].name, "Rhine");
    }
}
