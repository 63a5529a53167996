//! The options of a drop-down list: as elements when it is open, else as the lines of the page's text that follow its
//! name.

use crate::{
    goal::{Bound, Goal},
    page::{Element, Page, Role},
    values, words,
};

/// A list longer than this is not read to its end.
const MOST: usize = 80;

/// The texts of the options, as far as the page shows them.
pub(super) fn of(page: &Page, select: &Element) -> Vec<String> {
    let open = open_options(page, select);
    if !open.is_empty() {
        return open.iter().map(|option| option.text.clone()).collect();
    }
    if !page.has_text {
        return Vec::new();
    }
    let Some(from) = first_line(page, select) else { return Vec::new() };
    let names: Vec<&str> = page
        .elements
        .iter()
        .filter(|element| element.role != Role::Link)
        .map(|element| element.text.as_str())
        .collect();
    let ends = |line: &&String| names.contains(&line.as_str()) || line.split_whitespace().count() > 5;
    page.lines[from..].iter().take(MOST).take_while(|line| !ends(line)).cloned().collect()
}

/// The options that stand right behind the list in the order of elements.
pub(super) fn open_options<'a>(page: &'a Page, select: &Element) -> Vec<&'a Element> {
    let behind = page.elements.iter().skip_while(|element| element.id != select.id).skip(1);
    behind.take_while(|element| element.role == Role::Option).collect()
}

/// Below the line with the name; or, when the name is not written, at a line such as `Any city`.
fn first_line(page: &Page, select: &Element) -> Option<usize> {
    if let Some(at) = page.lines.iter().position(|line| *line == select.text) {
        return Some(at + 1);
    }
    let name = words::content(&select.text);
    let opens = |line: &String| {
        let stems = words::stems(line);
        let first = stems.first().map_or("", String::as_str);
        ["any", "all", "choose", "select"].contains(&first) && name.iter().all(|stem| stems.contains(stem))
    };
    page.lines.iter().position(opens)
}

pub(super) fn is_sort(select: &Element, options: &[String]) -> bool {
    let says = |stems: &[String]| stems.iter().any(|stem| ["sort", "order"].contains(&stem.as_str()));
    let ordered = |option: &String| {
        let stems = words::stems(option);
        ["low", "high", "newest", "oldest", "ascend", "descend"]
            .iter()
            .any(|word| stems.iter().any(|stem| stem == word))
    };
    says(&select.stems) || options.iter().filter(|option| ordered(option)).count() >= 2
}

/// The option that the task names, with the most words.
pub(super) fn named(goal: &Goal, options: &[String]) -> Option<String> {
    let fits = |option: &&String| {
        let stems = words::content(option);
        let all = words::stems(option);
        let open =
            all.first().is_some_and(|first| ["any", "all", "choos", "select"].contains(&first.as_str()));
        !open && !stems.is_empty() && stems.iter().all(|stem| goal.words.contains(stem))
            || at_limit(goal, option)
    };
    options.iter().filter(fits).max_by_key(|option| words::content(option).len()).cloned()
}

/// `4.5 and up` when the task says 4.5 or better.
fn at_limit(goal: &Goal, option: &str) -> bool {
    let stems = words::stems(option);
    let upward = ["up", "more", "above", "least", "from", "over"]
        .iter()
        .any(|word| stems.iter().any(|stem| stem == word));
    let downward =
        ["under", "below", "most", "less", "to"].iter().any(|word| stems.iter().any(|stem| stem == word));
    let Some(amount) = values::amounts(option).into_iter().next() else { return false };
    goal.limits.iter().any(|limit| match &limit.bound {
        Bound::Number { value, .. } => {
            (value - amount.value).abs() < 1e-9 && if limit.upper { downward && !upward } else { upward }
        }
        Bound::Day(_) => false,
    })
}

/// The order that brings the asked-for thing to the top.
pub(super) fn sorting(goal: &Goal, options: &[String]) -> Option<String> {
    let [extreme] = goal.extremes.as_slice() else { return None };
    let score = |option: &String| {
        let stems = words::stems(option);
        let has =
            |words: &[&str]| words.iter().any(|word| stems.iter().any(|stem| *stem == words::stem(word)));
        let said = extreme.said.iter().filter(|word| !goal.noun.contains(word));
        let about = said.chain(&extreme.meant).any(|word| stems.iter().any(|stem| words::alike(stem, word)));
        let first = |word: &str| stems.iter().position(|stem| stem == word);
        let rising = match (first("low"), first("high")) {
            (Some(low), Some(high)) => Some(low < high),
            _ if has(&["ascending", "lowest", "oldest", "cheapest"]) => Some(true),
            _ if has(&["descending", "highest", "newest", "latest", "best", "top"]) => Some(false),
            _ => None,
        };
        let direction = match rising {
            Some(rising) if rising == extreme.largest => -3,
            Some(_) => 1,
            None => 0,
        };
        if about { 2 + direction } else { 0 }
    };
    let best = options.iter().max_by_key(|option| score(option))?;
    (score(best) >= 2).then(|| best.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn options_are_read_below_the_name_or_from_the_open_list() {
        let tree =
            "id: 1, text: Kind, tag: select\nid: 2, text: Town, tag: select\nid: 3, text: Go, tag: button";
        let page =
            Page::new("", "", tree, Some("Kind\nAny kind\nFull-time\nTown\nAny town\nLyon\nGo\nWelcome"));
        assert_eq!(of(&page, &page.elements[0]), ["Any kind", "Full-time"]);
        assert_eq!(of(&page, &page.elements[1]), ["Any town", "Lyon"]);
        let open =
            Page::new("", "", "id: 1, text: Kind, tag: select\nid: 2, text: Part-time, tag: option", None);
        assert_eq!(of(&open, &open.elements[0]), ["Part-time"]);
    }

    #[test]
    fn the_order_that_helps_is_chosen() {
        let prices =
            texts(&["Best match", "Price: low to high", "Price: high to low", "Customer rating", "Name"]);
        for (task, wanted) in [
            ("What is the cheapest lamp?", Some("Price: low to high")),
            ("Find the most expensive lamp.", Some("Price: high to low")),
            ("Which lamp has the best customer rating?", Some("Customer rating")),
            ("Which lamp is the longest?", None),
        ] {
            assert_eq!(sorting(&Goal::read(task), &prices).as_deref(), wanted, "{task}");
        }
        let dates = texts(&["Newest first", "Highest salary", "Job title"]);
        assert_eq!(
            sorting(&Goal::read("Which was posted most recently?"), &dates).as_deref(),
            Some("Newest first")
        );
        assert_eq!(
            sorting(&Goal::read("Which job has the highest top salary?"), &dates).as_deref(),
            Some("Highest salary")
        );
    }

    #[test]
    fn options_the_task_names_are_chosen() {
        let goal = Goal::read("How many full-time jobs rated 4.5 or better are there in Lyon?");
        assert_eq!(named(&goal, &texts(&["Any", "Full-time", "Part-time"])).as_deref(), Some("Full-time"));
        assert_eq!(named(&goal, &texts(&["Any", "4.0 and up", "4.5 and up"])).as_deref(), Some("4.5 and up"));
        assert_eq!(named(&goal, &texts(&["Paris", "Rome", "Any jobs"])), None);
    }
}
