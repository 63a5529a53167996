//! The articles, written from the facts of the world: one file a subject, one function a kind.

mod city;
mod nature;
mod overview;
mod person;
mod region;

use std::sync::LazyLock;

use super::{
    article::Article,
    world::{CITIES, INVENTIONS, LAKES, MOUNTAINS, PEOPLE, REGIONS, RIVERS},
};

static ARTICLES: LazyLock<Vec<Article>> = LazyLock::new(|| {
    let mut all = overview::articles();
    all.extend(REGIONS.iter().map(region::article));
    all.extend(CITIES.iter().map(city::article));
    all.extend(RIVERS.iter().map(nature::river));
    all.extend(MOUNTAINS.iter().map(nature::mountain));
    all.extend(LAKES.iter().map(nature::lake));
    all.extend(PEOPLE.iter().map(person::person));
    all.extend(INVENTIONS.iter().map(person::invention));
    all.sort_by(|a, b| a.title.cmp(&b.title));
    all
});

/// Every article, by title.
pub(crate) fn all() -> &'static [Article] {
    &ARTICLES
}

pub(crate) fn find(slug: &str) -> Option<&'static Article> {
    all().iter().find(|article| article.slug() == slug)
}

/// `a`, `a and b`, `a, b and c`.
fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn link(title: &str) -> String {
    format!("[[{title}]]")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{
        super::article::{Block, links},
        *,
    };

    #[test]
    fn there_are_many_and_they_are_long() {
        assert!(all().len() >= 40, "only {}", all().len());
        for article in all() {
            let words = article.words().split_whitespace().count();
            assert!(words >= 220, "{} has only {words} words", article.title);
            assert!(article.sections.len() >= 3, "{}", article.title);
        }
    }

    #[test]
    fn every_link_leads_to_an_article_and_every_article_is_linked_to() {
        let titles: HashSet<&str> = all().iter().map(|article| article.title.as_str()).collect();
        let mut reached = HashSet::new();
        for article in all() {
            let mut texts: Vec<&str> = vec![&article.summary];
            texts.extend(article.facts.iter().map(|(_, value)| value.as_str()));
            for block in article.sections.iter().flat_map(|section| &section.blocks) {
                match block {
                    Block::Text(text) => texts.push(text),
                    Block::Table { rows, .. } => texts.extend(rows.iter().flatten().map(String::as_str)),
                }
            }
            for title in texts.into_iter().flat_map(links) {
                assert!(titles.contains(title), "{} links to {title:?}", article.title);
                if title != article.title {
                    reached.insert(title);
                }
            }
        }
        assert_eq!(titles.difference(&reached).collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn tables_are_rectangular() {
        for block in all().iter().flat_map(|article| &article.sections).flat_map(|section| &section.blocks) {
            if let Block::Table { head, rows } = block {
                assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == head.len()), "{head:?}");
            }
        }
    }
}
