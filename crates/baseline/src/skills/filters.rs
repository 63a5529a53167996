//! Filters and sorts a list with the controls of the page.

use super::{SkillContext, options, submit};
use crate::{
    action::{Action, Decision},
    goal::{Bound, Limit},
    nlp,
    page::{Element, Role},
};

/// Words on a control without meaning for the filter.
const FILLER_WORDS: [&str; 4] = ["only", "show", "any", "all"];
const UPPER_LIMIT_WORDS: [&str; 7] = ["to", "max", "maximum", "most", "under", "below", "before"];
const LOWER_LIMIT_WORDS: [&str; 8] = ["from", "min", "minimum", "least", "over", "above", "after", "since"];
const MAX_SCROLLS: usize = 2;

/// Sets the next filter that the task needs, or submits the filters.
pub(super) fn set_next(context: &mut SkillContext<'_>) -> Option<Decision> {
    if !context.goal.needs_list() || context.memory.subject.is_some() {
        return None;
    }
    set_toggle(context)
        .or_else(|| open_select(context))
        .or_else(|| choose_option(context))
        .or_else(|| fill_limit(context))
        .or_else(|| scroll_to_sorting(context))
        .or_else(|| if context.memory.has_unsent_filters { submit::submit(context) } else { None })
}

fn record_filter(context: &mut SkillContext<'_>, filter: String) {
    context.memory.filters.push(filter);
    context.memory.has_unsent_filters = true;
}

fn is_set(context: &SkillContext<'_>, filter: &str) -> bool {
    context.memory.filters.iter().any(|set| set == filter)
}

/// Clicks a check box or radio button whose words are all in the task, unless the URL shows that it is set.
fn set_toggle(context: &mut SkillContext<'_>) -> Option<Decision> {
    let in_url = context.page.query_stems();
    let is_wanted = |element: &&Element| {
        let stems: Vec<String> = nlp::content_stems(&element.text)
            .into_iter()
            .filter(|stem| !FILLER_WORDS.contains(&stem.as_str()))
            .collect();
        !stems.is_empty()
            && stems.iter().all(|stem| context.goal.stems.contains(stem))
            && !stems.iter().all(|stem| in_url.contains(stem))
            && !is_set(context, &format!("[x] {}", element.text))
    };
    let found = context.page.with_role(Role::Toggle).find(is_wanted)?.clone();
    record_filter(context, format!("[x] {}", found.text));
    Some(Decision::new(Action::click(&found), format!("the task mentions “{}”", found.text)))
}

/// Returns the option to choose in a select: the sort order that helps, or the option that the task names.
fn wanted_option(context: &SkillContext<'_>, select: &Element) -> Option<String> {
    let all = options::texts(context.page, select);
    let option = if options::is_sort_select(select, &all) {
        options::find_sort_order(context.goal, &all)
    } else {
        options::find_named(context.goal, &all)
    }?;
    let in_url = context.page.query_stems();
    let stems = nlp::content_stems(&option);
    let is_in_url = !stems.is_empty() && stems.iter().all(|stem| in_url.contains(stem));
    (!is_in_url && !is_set(context, &format!("{}={option}", select.text))).then_some(option)
}

fn choose_option(context: &mut SkillContext<'_>) -> Option<Decision> {
    let found = context
        .page
        .with_role(Role::Select)
        .find_map(|select| Some((select.clone(), wanted_option(context, select)?)));
    let (select, option) = found?;
    let open = options::open_options(context.page, &select)
        .into_iter()
        .find(|element| element.text == option)
        .cloned();
    record_filter(context, format!("{}={option}", select.text));
    let reason = format!("the task needs the option “{option}” of “{}”", select.text);
    // Typing into a select chooses the option with that text.
    let action = open.map_or_else(|| Action::type_text(&select, &option), |element| Action::click(&element));
    Some(Decision::new(action, reason))
}

/// Opens a select. Without the page's text its options are visible only when it is open.
fn open_select(context: &mut SkillContext<'_>) -> Option<Decision> {
    if context.page.has_text {
        return None;
    }
    let wants_sorting = context.goal.superlatives.len() == 1;
    let is_promising = |select: &&Element| {
        let is_mentioned = select.stems.iter().any(|stem| context.goal.stems.contains(stem));
        let is_closed = options::texts(context.page, select).is_empty();
        is_closed
            && (is_mentioned
                || wants_sorting && options::is_sort_select(select, &[])
                || context.goal.is_count())
            && !context.memory.has_tried(&Action::click(select).description())
            && !context.memory.filters.iter().any(|set| set.starts_with(&format!("{}=", select.text)))
    };
    let found = context.page.with_role(Role::Select).find(is_promising)?.clone();
    context.try_once(Action::click(&found), "its options may be what the task needs")
}

/// Types a limit of the task into a number or date field. Typing submits the form.
fn fill_limit(context: &mut SkillContext<'_>) -> Option<Decision> {
    let found = context.goal.limits.iter().find_map(|limit| {
        let fields = context.page.elements.iter().filter(|element| element.is_field());
        let best = fields
            .filter_map(|field| Some((rate_field(field, limit)?, field)))
            .max_by_key(|(rating, _)| *rating)?
            .1;
        let value = match &limit.bound {
            Bound::Number { value, .. } => value.to_string(),
            Bound::Day(date) => date.iso(),
        };
        let filter = format!("{}={value}", best.text);
        (!is_set(context, &filter)).then(|| (best.clone(), value, filter))
    });
    let (field, value, filter) = found?;
    record_filter(context, filter);
    context.memory.has_unsent_filters = false;
    let reason = format!("the task sets the limit {value}, which the field “{}” accepts", field.text);
    Some(Decision::new(Action::type_text(&field, &value), reason))
}

/// Rates how well a field fits a limit by its type, its direction and the words near the limit; `None` if it does not.
fn rate_field(field: &Element, limit: &Limit) -> Option<usize> {
    let has = |words: &[&str]| words.iter().any(|word| field.stems.iter().any(|stem| stem == word));
    let is_right_type = match &limit.bound {
        Bound::Number { .. } => field.role == Role::Number,
        Bound::Day(_) => field.role == Role::Date,
    };
    let is_right_direction = if limit.is_upper {
        has(&UPPER_LIMIT_WORDS) && !has(&LOWER_LIMIT_WORDS)
    } else {
        has(&LOWER_LIMIT_WORDS)
    };
    let is_money = field.text.contains(['$', '€', '£']);
    let shared_words = limit
        .nearby_stems
        .iter()
        .filter(|word| field.stems.iter().any(|stem| nlp::stems_match(stem, word)))
        .count();
    let is_related =
        shared_words > 0 || (is_money && matches!(limit.bound, Bound::Number { is_money: true, .. }));
    (is_right_type && is_right_direction && is_related).then_some(shared_words + usize::from(is_money))
}

/// Scrolls down if the list can be sorted but the control is outside the viewport.
fn scroll_to_sorting(context: &mut SkillContext<'_>) -> Option<Decision> {
    let is_in_text = context.page.lines.iter().any(|line| {
        let lower = line.to_lowercase();
        line.split_whitespace().count() <= 3 && (lower.starts_with("sort") || lower.starts_with("order by"))
    });
    let is_visible = context
        .page
        .with_role(Role::Select)
        .any(|select| options::is_sort_select(select, &options::texts(context.page, select)));
    let is_sorted = context.memory.filters.iter().any(|set| set.to_lowercase().contains("sort"));
    // Without the text, assume that a page with several filters can also be sorted.
    let filters = context
        .page
        .elements
        .iter()
        .filter(|element| matches!(element.role, Role::Select | Role::Toggle | Role::Number));
    let is_sortable = is_in_text || !context.page.has_text && filters.count() >= 2;
    let is_useful = context.goal.superlatives.len() == 1;
    if !is_sortable
        || is_visible
        || is_sorted
        || !is_useful
        || context.memory.scrolled >= MAX_SCROLLS
        || context.memory.at_bottom
    {
        return None;
    }
    context.memory.scrolled += 1;
    Some(Decision::new(Action::ScrollDown, "the list can be sorted further down"))
}
