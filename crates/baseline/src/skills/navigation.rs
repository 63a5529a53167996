//! Navigates to the page with the answer, by the best matching link or the search field.

use super::SkillContext;
use crate::{
    action::{Action, Decision},
    goal::Subject,
    nlp,
    page::{Element, Role},
};

/// Links with this score are followed before the search field is used.
const GOOD_SCORE: f64 = 2.4;
/// Links with this score are worth a try.
const FAIR_SCORE: f64 = 0.6;
/// Links that are irrelevant unless the task mentions them.
const IRRELEVANT_WORDS: [&str; 14] = [
    "login", "sign", "register", "account", "cart", "basket", "checkout", "terms", "privacy", "contact",
    "help", "imprint", "cookie", "download",
];
const LIST_WORDS: [&str; 5] = ["all", "list", "browse", "every", "overview"];
const MAX_QUERIES: usize = 4;

pub(super) fn follow_good_link(context: &mut SkillContext<'_>) -> Option<Decision> {
    follow_best_link(context, GOOD_SCORE)
}

/// For questions about a list of things without a name, a link to a list is tried before the search field.
pub(super) fn follow_list_link(context: &mut SkillContext<'_>) -> Option<Decision> {
    let is_unnamed =
        context.goal.subject().is_none_or(|subject| subject.text.starts_with(char::is_lowercase));
    if context.goal.needs_list() && is_unnamed { follow_best_link(context, FAIR_SCORE) } else { None }
}

pub(super) fn follow_fair_link(context: &mut SkillContext<'_>) -> Option<Decision> {
    follow_best_link(context, FAIR_SCORE)
}

fn follow_best_link(context: &mut SkillContext<'_>, min_score: f64) -> Option<Decision> {
    let subject = context.subject();
    let mut best: Option<(f64, &Element)> = None;
    for link in context.page.links() {
        let score = link_score(context, link, subject.as_ref());
        let is_tried = context.memory.has_tried(&Action::click(link).description());
        if score >= min_score && !is_tried && best.is_none_or(|(max, _)| score > max) {
            best = Some((score, link));
        }
    }
    let (score, link) = best.map(|(score, link)| (score, link.clone()))?;
    context
        .try_once(Action::click(&link), format!("“{}” matches the task best (score {score:.1})", link.text))
}

/// Rates a link: a match with the subject counts most, then a link to a list of the right things.
fn link_score(context: &SkillContext<'_>, link: &Element, subject: Option<&Subject>) -> f64 {
    let goal = context.goal;
    let stems: Vec<String> = nlp::content_stems(&link.text);
    if stems.is_empty() || link.text == context.page.heading() {
        return 0.0;
    }
    let has = |word: &str| link.stems.iter().any(|stem| stem == word);
    let subject_score = subject.map_or(0.0, |subject| {
        let has_all_required = subject.required.iter().all(|stem| stems.contains(stem));
        let similarity = nlp::jaccard_similarity(&subject.stems, &stems);
        if has_all_required { 2.0 + similarity } else { similarity }
    });
    // A list of the subject must not be left for a more general list.
    let page_stems = context.page.title_and_url_stems();
    let is_about_subject =
        subject.is_some_and(|subject| subject.required.iter().all(|stem| page_stems.contains(stem)));
    let wants_list = goal.needs_list() && context.memory.subject.is_none() && !is_about_subject;
    let has_noun = goal
        .noun
        .iter()
        .chain(goal.superlatives.iter().flat_map(|superlative| &superlative.explicit))
        .any(|stem| stems.contains(stem));
    let is_list = LIST_WORDS.iter().any(|word| has(word));
    let list_score = match (wants_list, has_noun, is_list) {
        (true, true, true) => 2.6,
        (true, true, false) => 1.2,
        (true, false, true) => 0.7,
        _ => 0.0,
    };
    let shared = nlp::coverage(&stems, &goal.stems) * 0.8;
    let is_irrelevant =
        IRRELEVANT_WORDS.iter().any(|word| has(word) && !goal.stems.iter().any(|stem| stem == word));
    subject_score.max(list_score) + shared - if is_irrelevant { 2.0 } else { 0.0 }
}

/// Types the subject into the search field, with fewer words after each failed search.
pub(super) fn search(context: &mut SkillContext<'_>) -> Option<Decision> {
    let subject = context.subject()?;
    if context.is_about(&subject) {
        return None;
    }
    let field = search_field(context)?.clone();
    let query = queries(&subject).into_iter().find(|query| {
        let action = Action::type_text(&field, query);
        !context.memory.has_tried_anywhere(&action.description())
    })?;
    let reason = format!("the page can be searched for “{query}”");
    context.try_once(Action::type_text(&field, &query), reason)
}

fn search_field<'a>(context: &'a SkillContext<'_>) -> Option<&'a Element> {
    let fields = || context.page.with_role(Role::Text);
    fields().find(|field| field.is_search).or_else(|| {
        // A text field directly before a search button.
        let mut pairs = context.page.elements.windows(2);
        let found = pairs.find(|pair| {
            pair[0].role == Role::Text
                && pair[1].role == Role::Button
                && pair[1].stems.contains(&"search".to_owned())
        });
        found.map(|pair| &pair[0])
    })
}

/// Returns the search queries: the whole name, its beginnings, its required words, and the stem of its last word.
fn queries(subject: &Subject) -> Vec<String> {
    let all: Vec<&str> = nlp::tokenize(&subject.text).iter().map(|token| token.text).collect();
    let mut found: Vec<String> = (1..=all.len()).rev().map(|length| all[..length].join(" ")).collect();
    let tokens = nlp::tokenize(&subject.text);
    let required = tokens.iter().filter(|token| subject.required.contains(&nlp::stem(token.text)));
    found.push(required.map(|token| token.text).collect::<Vec<_>>().join(" "));
    found.extend(all.last().filter(|word| word.len() > 3).map(|word| nlp::stem(word)));
    let mut unique: Vec<String> = Vec::new();
    found.into_iter().filter(|query| !query.is_empty()).for_each(|query| {
        if !unique.contains(&query) {
            unique.push(query);
        }
    });
    unique.truncate(MAX_QUERIES);
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_get_shorter() {
        assert_eq!(
            queries(&Subject::new("Velvet desk lamp")),
            ["Velvet desk lamp", "Velvet desk", "Velvet", "lamp"]
        );
        assert_eq!(queries(&Subject::new("Danube")), ["Danube", "danub"]);
    }
}
