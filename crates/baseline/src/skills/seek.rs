//! Getting to the page that has the answer: the link that fits best, the search field, any link that fits at all.

use super::Scene;
use crate::{
    action::{Action, Move},
    goal::Subject,
    page::{Element, Role},
    words,
};

/// A link as good as this is taken before anything is typed.
const GOOD: f64 = 2.4;
/// A link worth a try.
const FAIR: f64 = 0.6;
/// Links that lead away from the task, unless it speaks of them.
const AWAY: [&str; 14] = [
    "login", "sign", "register", "account", "cart", "basket", "checkout", "terms", "privacy", "contact",
    "help", "imprint", "cookie", "download",
];
const LISTS: [&str; 5] = ["all", "list", "browse", "every", "overview"];
const MOST_QUERIES: usize = 4;

pub(super) fn best_link(scene: &mut Scene<'_>) -> Option<Move> {
    follow(scene, GOOD)
}

/// For a question about a list of ordinary things the list comes before the search field.
pub(super) fn list_link(scene: &mut Scene<'_>) -> Option<Move> {
    let ordinary = scene.goal.subject().is_none_or(|subject| subject.text.starts_with(char::is_lowercase));
    if scene.goal.wants_list() && ordinary { follow(scene, FAIR) } else { None }
}

pub(super) fn any_link(scene: &mut Scene<'_>) -> Option<Move> {
    follow(scene, FAIR)
}

fn follow(scene: &mut Scene<'_>, least: f64) -> Option<Move> {
    let subject = scene.subject();
    let mut best: Option<(f64, &Element)> = None;
    for link in scene.page.links() {
        let score = score(scene, link, subject.as_ref());
        let known = scene.memory.has_tried(&Action::click(link).sentence());
        if score >= least && !known && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, link));
        }
    }
    let (score, link) = best.map(|(score, link)| (score, link.clone()))?;
    scene.once(Action::click(&link), format!("“{}” fits the task best ({score:.1})", link.text))
}

/// How well a link fits: the thing that is looked for counts most, then the words of a list that would hold it.
fn score(scene: &Scene<'_>, link: &Element, subject: Option<&Subject>) -> f64 {
    let goal = scene.goal;
    let stems: Vec<String> = words::content(&link.text);
    if stems.is_empty() || link.text == scene.page.heading() {
        return 0.0;
    }
    let has = |word: &str| link.stems.iter().any(|stem| stem == word);
    let named = subject.map_or(0.0, |subject| {
        let whole = subject.strong.iter().all(|stem| stems.contains(stem));
        let like = words::likeness(&subject.stems, &stems);
        if whole { 2.0 + like } else { like }
    });
    // A list of the right things is not left for one of all things.
    let itself = scene.page.said_of_itself();
    let narrowed = subject.is_some_and(|subject| subject.strong.iter().all(|stem| itself.contains(stem)));
    let wants_list = goal.wants_list() && scene.memory.subject.is_none() && !narrowed;
    let noun = goal
        .noun
        .iter()
        .chain(goal.extremes.iter().flat_map(|one| &one.said))
        .any(|stem| stems.contains(stem));
    let listed = LISTS.iter().any(|word| has(word));
    let list = match (wants_list, noun, listed) {
        (true, true, true) => 2.6,
        (true, true, false) => 1.2,
        (true, false, true) => 0.7,
        _ => 0.0,
    };
    let shared = words::coverage(&stems, &goal.words) * 0.8;
    let away = AWAY.iter().any(|word| has(word) && !goal.words.iter().any(|stem| stem == word));
    named.max(list) + shared - if away { 2.0 } else { 0.0 }
}

/// Types what is looked for into the search field, in fewer words each time it led nowhere.
pub(super) fn search(scene: &mut Scene<'_>) -> Option<Move> {
    let subject = scene.subject()?;
    if scene.is_about(&subject) {
        return None;
    }
    let field = field(scene)?.clone();
    let query = queries(&subject).into_iter().find(|query| {
        let action = Action::fill(&field, query);
        !scene.memory.ever_tried(&action.sentence())
    })?;
    let why = format!("the page can be searched for “{query}”");
    scene.once(Action::fill(&field, &query), why)
}

fn field<'a>(scene: &'a Scene<'_>) -> Option<&'a Element> {
    let fields = || scene.page.of(Role::Text);
    fields().find(|field| field.search).or_else(|| {
        // A single field right before a button that says search.
        let mut two = scene.page.elements.windows(2);
        let found = two.find(|two| {
            two[0].role == Role::Text
                && two[1].role == Role::Button
                && two[1].stems.contains(&"search".to_owned())
        });
        found.map(|two| &two[0])
    })
}

/// The whole name, then without its last words, then its strong words alone.
fn queries(subject: &Subject) -> Vec<String> {
    let all: Vec<&str> = words::tokens(&subject.text).iter().map(|token| token.text).collect();
    let mut found: Vec<String> = (1..=all.len()).rev().map(|length| all[..length].join(" ")).collect();
    let strong = words::tokens(&subject.text);
    let strong = strong.iter().filter(|token| subject.strong.contains(&words::stem(token.text)));
    found.push(strong.map(|token| token.text).collect::<Vec<_>>().join(" "));
    found.extend(all.last().filter(|word| word.len() > 3).map(|word| words::stem(word)));
    let mut once: Vec<String> = Vec::new();
    found.into_iter().filter(|query| !query.is_empty()).for_each(|query| {
        if !once.contains(&query) {
            once.push(query);
        }
    });
    once.truncate(MOST_QUERIES);
    once
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
