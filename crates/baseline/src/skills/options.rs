//! Finds the options of a select: its elements if it is open, or else the lines below its name in the page's text.

use crate::{
    goal::{Bound, Goal},
    nlp,
    page::{Element, Page, Role},
    values,
};

const MAX_OPTIONS: usize = 80;

/// Returns the texts of the options that the page shows.
pub(super) fn texts(page: &Page, select: &Element) -> Vec<String> {
    let open = open_options(page, select);
    if !open.is_empty() {
        return open.iter().map(|option| option.text.clone()).collect();
    }
    if !page.has_text {
        return Vec::new();
    }
    let Some(from) = first_option_line(page, select) else { return Vec::new() };
    let names: Vec<&str> = page
        .elements
        .iter()
        .filter(|element| element.role != Role::Link)
        .map(|element| element.text.as_str())
        .collect();
    let is_end = |line: &&String| names.contains(&line.as_str()) || line.split_whitespace().count() > 5;
    page.lines[from..].iter().take(MAX_OPTIONS).take_while(|line| !is_end(line)).cloned().collect()
}

/// Returns the option elements directly after the select.
pub(super) fn open_options<'a>(page: &'a Page, select: &Element) -> Vec<&'a Element> {
    let after = page.elements.iter().skip_while(|element| element.id != select.id).skip(1);
    after.take_while(|element| element.role == Role::Option).collect()
}

/// Returns the line after the name of the select or, if the name is not in the text, a line such as `Any city`.
fn first_option_line(page: &Page, select: &Element) -> Option<usize> {
    if let Some(index) = page.lines.iter().position(|line| *line == select.text) {
        return Some(index + 1);
    }
    let name = nlp::content_stems(&select.text);
    let is_any_option = |line: &String| {
        let stems = nlp::stems(line);
        let first = stems.first().map_or("", String::as_str);
        ["any", "all", "choose", "select"].contains(&first) && name.iter().all(|stem| stems.contains(stem))
    };
    page.lines.iter().position(is_any_option)
}

/// Whether a select changes the sort order.
pub(super) fn is_sort_select(select: &Element, options: &[String]) -> bool {
    let is_sort_name = |stems: &[String]| stems.iter().any(|stem| ["sort", "order"].contains(&stem.as_str()));
    let is_sort_order = |option: &String| {
        let stems = nlp::stems(option);
        ["low", "high", "newest", "oldest", "ascend", "descend"]
            .iter()
            .any(|word| stems.iter().any(|stem| stem == word))
    };
    is_sort_name(&select.stems) || options.iter().filter(|option| is_sort_order(option)).count() >= 2
}

/// Returns the longest option that the task names.
pub(super) fn find_named(goal: &Goal, options: &[String]) -> Option<String> {
    let matches = |option: &&String| {
        let stems = nlp::content_stems(option);
        let all = nlp::stems(option);
        let is_any_option =
            all.first().is_some_and(|first| ["any", "all", "choos", "select"].contains(&first.as_str()));
        !is_any_option && !stems.is_empty() && stems.iter().all(|stem| goal.stems.contains(stem))
            || is_limit_option(goal, option)
    };
    options.iter().filter(matches).max_by_key(|option| nlp::content_stems(option).len()).cloned()
}

/// Whether the option sets a limit of the task: `4.5 and up` for "4.5 or better".
fn is_limit_option(goal: &Goal, option: &str) -> bool {
    let stems = nlp::stems(option);
    let is_lower_limit = ["up", "more", "above", "least", "from", "over"]
        .iter()
        .any(|word| stems.iter().any(|stem| stem == word));
    let is_upper_limit =
        ["under", "below", "most", "less", "to"].iter().any(|word| stems.iter().any(|stem| stem == word));
    let Some(amount) = values::amounts(option).into_iter().next() else { return false };
    goal.limits.iter().any(|limit| match &limit.bound {
        Bound::Number { value, .. } => {
            (value - amount.value).abs() < 1e-9
                && if limit.is_upper { is_upper_limit && !is_lower_limit } else { is_lower_limit }
        }
        Bound::Day(_) => false,
    })
}

/// Returns the sort order that puts the wanted item first.
pub(super) fn find_sort_order(goal: &Goal, options: &[String]) -> Option<String> {
    let [superlative] = goal.superlatives.as_slice() else { return None };
    let score = |option: &String| {
        let stems = nlp::stems(option);
        let has = |words: &[&str]| words.iter().any(|word| stems.iter().any(|stem| *stem == nlp::stem(word)));
        let explicit = superlative.explicit.iter().filter(|word| !goal.noun.contains(word));
        let is_about = explicit
            .chain(&superlative.implied)
            .any(|word| stems.iter().any(|stem| nlp::stems_match(stem, word)));
        let position = |word: &str| stems.iter().position(|stem| stem == word);
        let is_ascending = match (position("low"), position("high")) {
            (Some(low), Some(high)) => Some(low < high),
            _ if has(&["ascending", "lowest", "oldest", "cheapest"]) => Some(true),
            _ if has(&["descending", "highest", "newest", "latest", "best", "top"]) => Some(false),
            _ => None,
        };
        let direction = match is_ascending {
            Some(is_ascending) if is_ascending == superlative.largest => -3,
            Some(_) => 1,
            None => 0,
        };
        if is_about { 2 + direction } else { 0 }
    };
    let best = options.iter().max_by_key(|option| score(option))?;
    (score(best) >= 2).then(|| best.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn options_are_found_in_text_or_elements() {
        let elements = "id: 1, text: AnswerKind, tag: select\nid: 2, text: Town, tag: select\nid: 3, text: Go, tag: button";
        let page = Page::new(
            "",
            "",
            elements,
            Some("AnswerKind\nAny kind\nFull-time\nTown\nAny town\nLyon\nGo\nWelcome"),
        );
        assert_eq!(texts(&page, &page.elements[0]), ["Any kind", "Full-time"]);
        assert_eq!(texts(&page, &page.elements[1]), ["Any town", "Lyon"]);
        let open = Page::new(
            "",
            "",
            "id: 1, text: AnswerKind, tag: select\nid: 2, text: Part-time, tag: option",
            None,
        );
        assert_eq!(texts(&open, &open.elements[0]), ["Part-time"]);
    }

    #[test]
    fn matching_sort_order_is_found() {
        let prices =
            strings(&["Best match", "Price: low to high", "Price: high to low", "Customer rating", "Name"]);
        for (task, expected) in [
            ("What is the cheapest lamp?", Some("Price: low to high")),
            ("Find the most expensive lamp.", Some("Price: high to low")),
            ("Which lamp has the best customer rating?", Some("Customer rating")),
            ("Which lamp is the longest?", None),
        ] {
            assert_eq!(find_sort_order(&Goal::parse(task), &prices).as_deref(), expected, "{task}");
        }
        let dates = strings(&["Newest first", "Highest salary", "Job title"]);
        assert_eq!(
            find_sort_order(&Goal::parse("Which was posted most recently?"), &dates).as_deref(),
            Some("Newest first")
        );
        assert_eq!(
            find_sort_order(&Goal::parse("Which job has the highest top salary?"), &dates).as_deref(),
            Some("Highest salary")
        );
    }

    #[test]
    fn named_option_is_found() {
        let goal = Goal::parse("How many full-time jobs rated 4.5 or better are there in Lyon?");
        assert_eq!(
            find_named(&goal, &strings(&["Any", "Full-time", "Part-time"])).as_deref(),
            Some("Full-time")
        );
        assert_eq!(
            find_named(&goal, &strings(&["Any", "4.0 and up", "4.5 and up"])).as_deref(),
            Some("4.5 and up")
        );
        assert_eq!(find_named(&goal, &strings(&["Paris", "Rome", "Any jobs"])), None);
    }
}
