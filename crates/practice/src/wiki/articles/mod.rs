//! The articles of the encyclopedia, rendered once from the world's facts and the templates in `data/wiki/articles/`.

mod subjects;
mod template;

use std::sync::LazyLock;

use serde::Deserialize;

use self::template::{SectionTemplate, Template};
use super::{
    article::{Article, Kind},
    world::world,
};
use crate::data;

/// The templates of all list articles: what they share, and what each has of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTemplates {
    #[serde(borrow)]
    facts: Vec<(&'static str, &'static str)>,
    lists: Vec<ListTemplate>,
    closing_sections: Vec<SectionTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTemplate {
    title: &'static str,
    summary: &'static str,
    /// What makes a thing belong to the list.
    rule: &'static str,
    section: SectionTemplate,
}

static ARTICLES: LazyLock<Vec<Article>> = LazyLock::new(|| {
    let world = world();
    let country: Template = data::load!("wiki/articles/country.json");
    let region: Template = data::load!("wiki/articles/region.json");
    let city: Template = data::load!("wiki/articles/city.json");
    let river: Template = data::load!("wiki/articles/river.json");
    let mountain: Template = data::load!("wiki/articles/mountain.json");
    let lake: Template = data::load!("wiki/articles/lake.json");
    let person: Template = data::load!("wiki/articles/person.json");
    let invention: Template = data::load!("wiki/articles/invention.json");
    let mut all = vec![country.render(subjects::country())];
    all.extend(lists());
    all.extend(world.regions.iter().map(|record| region.render(subjects::region(record))));
    all.extend(world.cities.iter().map(|record| city.render(subjects::city(record))));
    all.extend(world.rivers.iter().map(|record| river.render(subjects::river(record))));
    all.extend(world.mountains.iter().map(|record| mountain.render(subjects::mountain(record))));
    all.extend(world.lakes.iter().map(|record| lake.render(subjects::lake(record))));
    all.extend(world.people.iter().map(|record| person.render(subjects::person(record))));
    all.extend(world.inventions.iter().map(|record| invention.render(subjects::invention(record))));
    all.sort_by(|a, b| a.title.cmp(&b.title));
    all
});

fn lists() -> Vec<Article> {
    let ListTemplates { facts, lists, closing_sections } = data::load!("wiki/articles/lists.json");
    let render = |list: ListTemplate| {
        let records = list.section.table.as_ref().map_or("", |table| table.each);
        let mut sections = vec![list.section];
        sections.extend(closing_sections.iter().cloned());
        let template = Template {
            kind: Kind::Overview,
            title: list.title,
            phrases: Vec::new(),
            summary: list.summary,
            facts: facts.clone(),
            sections,
        };
        template.render(subjects::list(records).with("rule", list.rule))
    };
    lists.into_iter().map(render).collect()
}

/// All articles, sorted by title.
pub(crate) fn all() -> &'static [Article] {
    &ARTICLES
}

pub(crate) fn find(slug: &str) -> Option<&'static Article> {
    all().iter().find(|article| article.slug() == slug)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{
        super::article::{Block, links},
        *,
    };

    /// Every text of an article in which links and placeholders can occur.
    fn texts(article: &Article) -> Vec<&str> {
        let mut texts: Vec<&str> = vec![&article.title, &article.summary];
        texts.extend(article.facts.iter().map(|(_, value)| value.as_str()));
        for block in article.sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Text(text) => texts.push(text),
                Block::Table { rows, .. } => texts.extend(rows.iter().flatten().map(String::as_str)),
            }
        }
        texts
    }

    #[test]
    fn articles_are_numerous_and_long() {
        assert!(all().len() >= 40, "only {}", all().len());
        for article in all() {
            let words = article.text().split_whitespace().count();
            assert!(words >= 220, "{} has only {words} words", article.title);
            assert!(article.sections.len() >= 3, "{}", article.title);
        }
    }

    #[test]
    fn every_placeholder_is_filled() {
        for article in all() {
            for text in texts(article) {
                assert!(!text.contains(['{', '}']), "{}: {text}", article.title);
            }
        }
    }

    #[test]
    fn links_resolve_and_reach_every_article() {
        let titles: HashSet<&str> = all().iter().map(|article| article.title.as_str()).collect();
        let mut reached = HashSet::new();
        for article in all() {
            for title in texts(article).into_iter().flat_map(links) {
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
