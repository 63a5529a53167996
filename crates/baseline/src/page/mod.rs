//! The current page as the conversation describes it: title, URL, numbered elements and, if given, its text.
//! Screenshots are ignored.

mod records;
mod structure;

pub(crate) use records::{Record, records};
pub(crate) use structure::{Pair, Table, leading_number, pairs, tables};

use crate::nlp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Link,
    Button,
    Text,
    Number,
    Date,
    /// A check box or radio button.
    Toggle,
    Select,
    Option,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) role: Role,
    /// Whether the tag or the name says that this is a search field.
    pub(crate) is_search: bool,
    pub(crate) stems: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) elements: Vec<Element>,
    /// The lines of the page's text, or the texts of the elements if it was not given.
    pub(crate) lines: Vec<String>,
    /// Whether the page's text was given.
    pub(crate) has_text: bool,
}

const MAX_ELEMENTS: usize = 2_000;
const MAX_LINES: usize = 2_000;

impl Page {
    pub(crate) fn new(title: &str, url: &str, elements: &str, text: Option<&str>) -> Self {
        let elements: Vec<Element> = elements.lines().take(MAX_ELEMENTS).filter_map(Element::parse).collect();
        let lines: Vec<String> = match text {
            Some(text) => {
                text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
            None => {
                elements.iter().map(|element| element.text.clone()).filter(|text| !text.is_empty()).collect()
            }
        };
        let lines = lines.into_iter().take(MAX_LINES).collect();
        Self { title: title.to_owned(), url: url.to_owned(), elements, lines, has_text: text.is_some() }
    }

    /// Returns the title without the name of the site after it.
    pub(crate) fn heading(&self) -> &str {
        let cut = [" · ", " | ", " – ", " — ", " - ", " :: "]
            .iter()
            .filter_map(|separator| self.title.find(separator))
            .min();
        self.title.get(..cut.unwrap_or(self.title.len())).unwrap_or(&self.title).trim()
    }

    pub(crate) fn url_without_fragment(&self) -> &str {
        self.url.split('#').next().unwrap_or(&self.url)
    }

    /// Returns the URL without query and fragment.
    pub(crate) fn url_without_query(&self) -> &str {
        self.url_without_fragment().split('?').next().unwrap_or_default()
    }

    /// Returns the stems of the query string, which show the chosen filters. Search terms are left out.
    pub(crate) fn query_stems(&self) -> Vec<String> {
        let query = self.url_without_fragment().split_once('?').map_or("", |(_, query)| query);
        let filters = query.split('&').filter(|part| {
            let name = part.split('=').next().unwrap_or_default();
            !["q", "query", "search", "s", "k", "keyword", "keywords", "term", "text", "words"]
                .contains(&name)
        });
        let filters: Vec<&str> = filters.collect();
        nlp::stems(&filters.join("&").replace("%20", " ").replace('+', " "))
    }

    /// Returns the stems of title and URL.
    pub(crate) fn title_and_url_stems(&self) -> Vec<String> {
        let mut stems = nlp::stems(&self.title);
        stems.extend(nlp::stems(self.url_without_fragment()));
        stems
    }

    pub(crate) fn with_role(&self, role: Role) -> impl Iterator<Item = &Element> {
        self.elements.iter().filter(move |element| element.role == role)
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = &Element> {
        self.with_role(Role::Link)
    }

    /// Finds an element by its name: an exact match, or else the shortest name that contains all words.
    pub(crate) fn find_by_name(&self, name: &str, roles: &[Role]) -> Option<&Element> {
        let has_role = |element: &&Element| roles.contains(&element.role);
        let is_exact = |element: &&Element| element.text.trim().to_lowercase() == name.trim().to_lowercase();
        if let Some(found) = self.elements.iter().filter(has_role).find(is_exact) {
            return Some(found);
        }
        let wanted = nlp::content_stems(name);
        let contains_all =
            |element: &&Element| !wanted.is_empty() && wanted.iter().all(|word| element.stems.contains(word));
        self.elements.iter().filter(has_role).filter(contains_all).min_by_key(|element| element.stems.len())
    }
}

impl Element {
    /// Parses `id: 12, text: Add to cart, tag: button`. The text may itself contain such labels.
    fn parse(line: &str) -> Option<Self> {
        let (id, rest) = line.trim().strip_prefix("id: ")?.split_once(", text: ")?;
        let (text, tag) = rest.rsplit_once(", tag: ")?;
        let id = id.trim();
        if id.is_empty() || id.len() > 9 || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let text = text.trim();
        let role = role(tag.trim());
        let is_search = role == Role::Text && (tag.contains("type=search") || is_search_name(text));
        Some(Self { id: id.to_owned(), text: text.to_owned(), role, is_search, stems: nlp::stems(text) })
    }

    pub(crate) fn is_field(&self) -> bool {
        matches!(self.role, Role::Text | Role::Number | Role::Date)
    }
}

fn role(tag: &str) -> Role {
    let (name, kind) = tag.split_once(", type=").unwrap_or((tag, ""));
    match (name, kind) {
        ("a" | "area", _) => Role::Link,
        ("button" | "summary", _) | ("input", "submit" | "button" | "reset" | "image") => Role::Button,
        ("input", "checkbox" | "radio") => Role::Toggle,
        ("input", "number" | "range") => Role::Number,
        ("input", "date") => Role::Date,
        ("input", "" | "text" | "search" | "email" | "tel" | "url" | "password") | ("textarea", _) => {
            Role::Text
        }
        ("select", _) => Role::Select,
        ("option", _) => Role::Option,
        _ => Role::Other,
    }
}

fn is_search_name(text: &str) -> bool {
    let stems = nlp::stems(text);
    ["search", "find", "query", "keyword", "q"].iter().any(|word| stems.contains(&nlp::stem(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_with_misleading_text_are_parsed() {
        let elements = "id: 1, text: Search, the shop, tag: input, type=search\nid: 2, text: x, tag: y, tag: a\nid: 3, text: , tag: select\n\
                    nonsense\nid: x, text: a, tag: a";
        let page = Page::new("T", "u", elements, None);
        let found: Vec<_> =
            page.elements.iter().map(|element| (element.text.as_str(), element.role)).collect();
        assert_eq!(found, [("Search, the shop", Role::Text), ("x, tag: y", Role::Link), ("", Role::Select)]);
        assert!(page.elements[0].is_search);
    }

    #[test]
    fn heading_excludes_the_site_name() {
        for (title, expected) in
            [("Oak table · Shop", "Oak table"), ("Oak table", "Oak table"), ("A-b | C | D", "A-b")]
        {
            assert_eq!(Page::new(title, "", "", None).heading(), expected);
        }
    }

    #[test]
    fn closest_name_is_found() {
        let page = Page::new(
            "",
            "",
            "id: 1, text: Add to cart now, tag: button\nid: 2, text: Add to cart, tag: button",
            None,
        );
        assert_eq!(
            page.find_by_name("add to cart", &[Role::Button]).map(|element| element.id.as_str()),
            Some("2")
        );
        assert_eq!(page.find_by_name("to cart", &[Role::Link]), None);
    }

    #[test]
    fn query_stems_exclude_search_terms() {
        let page = Page::new("", "http://a.test/s?q=remote&kind=Full-time&city=Port+Louis#top", "", None);
        let stems = page.query_stems();
        assert!(
            ["full", "port", "louis"].iter().all(|word| stems.contains(&(*word).to_owned())),
            "{stems:?}"
        );
        assert!(!stems.contains(&"remot".to_owned()));
    }
}
