//! What the conversation tells about the page in front of the agent: title, address, numbered elements and, where it is
//! given, the page's text. Pictures are not looked at.

mod records;
mod structure;

pub(crate) use records::{Record, records};
pub(crate) use structure::{Pair, Table, leading, pairs, tables};

use crate::words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Link,
    Button,
    Text,
    Number,
    Date,
    /// A check box or radio button.
    Tick,
    Select,
    Option,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) role: Role,
    /// The tag says that this is a field to search with.
    pub(crate) search: bool,
    pub(crate) stems: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) elements: Vec<Element>,
    /// The page's text line by line; without it, the texts of the elements.
    pub(crate) lines: Vec<String>,
    /// The text was given, so that `lines` is more than the elements.
    pub(crate) has_text: bool,
}

/// More than any page shows at once.
const MOST_ELEMENTS: usize = 2_000;
const MOST_LINES: usize = 2_000;

impl Page {
    pub(crate) fn new(title: &str, url: &str, tree: &str, text: Option<&str>) -> Self {
        let elements: Vec<Element> = tree.lines().take(MOST_ELEMENTS).filter_map(Element::read).collect();
        let lines: Vec<String> = match text {
            Some(text) => {
                text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
            None => {
                elements.iter().map(|element| element.text.clone()).filter(|text| !text.is_empty()).collect()
            }
        };
        let lines = lines.into_iter().take(MOST_LINES).collect();
        Self { title: title.to_owned(), url: url.to_owned(), elements, lines, has_text: text.is_some() }
    }

    /// The title without the name of the site behind it.
    pub(crate) fn heading(&self) -> &str {
        let cut =
            [" · ", " | ", " – ", " — ", " - ", " :: "].iter().filter_map(|sign| self.title.find(sign)).min();
        self.title.get(..cut.unwrap_or(self.title.len())).unwrap_or(&self.title).trim()
    }

    /// The address without what comes behind `#`.
    pub(crate) fn address(&self) -> &str {
        self.url.split('#').next().unwrap_or(&self.url)
    }

    /// The address without its query.
    pub(crate) fn path(&self) -> &str {
        self.address().split('?').next().unwrap_or_default()
    }

    /// What the address says was chosen, in words. What was typed into a search field is no choice.
    pub(crate) fn query_stems(&self) -> Vec<String> {
        let query = self.address().split_once('?').map_or("", |(_, query)| query);
        let chosen = query.split('&').filter(|part| {
            let name = part.split('=').next().unwrap_or_default();
            !["q", "query", "search", "s", "k", "keyword", "keywords", "term", "text", "words"]
                .contains(&name)
        });
        let chosen: Vec<&str> = chosen.collect();
        words::stems(&chosen.join("&").replace("%20", " ").replace('+', " "))
    }

    /// The words of its title and address.
    pub(crate) fn said_of_itself(&self) -> Vec<String> {
        let mut stems = words::stems(&self.title);
        stems.extend(words::stems(self.address()));
        stems
    }

    pub(crate) fn of(&self, role: Role) -> impl Iterator<Item = &Element> {
        self.elements.iter().filter(move |element| element.role == role)
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = &Element> {
        self.of(Role::Link)
    }

    /// An element by its name: the very words, else the shortest name that has them all.
    pub(crate) fn named(&self, name: &str, roles: &[Role]) -> Option<&Element> {
        let fits = |element: &&Element| roles.contains(&element.role);
        let same = |element: &&Element| element.text.trim().to_lowercase() == name.trim().to_lowercase();
        if let Some(found) = self.elements.iter().filter(fits).find(same) {
            return Some(found);
        }
        let wanted = words::content(name);
        let holds =
            |element: &&Element| !wanted.is_empty() && wanted.iter().all(|word| element.stems.contains(word));
        self.elements.iter().filter(fits).filter(holds).min_by_key(|element| element.stems.len())
    }
}

impl Element {
    /// `id: 12, text: Add to cart, tag: button`. The text may hold anything, also these very words.
    fn read(line: &str) -> Option<Self> {
        let (id, rest) = line.trim().strip_prefix("id: ")?.split_once(", text: ")?;
        let (text, tag) = rest.rsplit_once(", tag: ").or_else(|| rest.split_once(", tag: "))?;
        let id = id.trim();
        if id.is_empty() || id.len() > 9 || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let text = text.trim();
        let role = role(tag.trim());
        let search = role == Role::Text && (tag.contains("type=search") || says_search(text));
        Some(Self { id: id.to_owned(), text: text.to_owned(), role, search, stems: words::stems(text) })
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
        ("input", "checkbox" | "radio") => Role::Tick,
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

fn says_search(text: &str) -> bool {
    let stems = words::stems(text);
    ["search", "find", "query", "keyword", "q"].iter().any(|word| stems.contains(&words::stem(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_whatever_their_text_says() {
        let tree = "id: 1, text: Search, the shop, tag: input, type=search\nid: 2, text: x, tag: y, tag: a\nid: 3, text: , tag: select\n\
                    nonsense\nid: x, text: a, tag: a";
        let page = Page::new("T", "u", tree, None);
        let found: Vec<_> =
            page.elements.iter().map(|element| (element.text.as_str(), element.role)).collect();
        assert_eq!(found, [("Search, the shop", Role::Text), ("x, tag: y", Role::Link), ("", Role::Select)]);
        assert!(page.elements[0].search);
    }

    #[test]
    fn the_heading_is_the_title_without_the_site() {
        for (title, wanted) in
            [("Oak table · Shop", "Oak table"), ("Oak table", "Oak table"), ("A-b | C | D", "A-b")]
        {
            assert_eq!(Page::new(title, "", "", None).heading(), wanted);
        }
    }

    #[test]
    fn the_nearest_name_is_taken() {
        let page = Page::new(
            "",
            "",
            "id: 1, text: Add to cart now, tag: button\nid: 2, text: Add to cart, tag: button",
            None,
        );
        assert_eq!(page.named("add to cart", &[Role::Button]).map(|element| element.id.as_str()), Some("2"));
        assert_eq!(page.named("to cart", &[Role::Link]), None);
    }

    #[test]
    fn the_address_tells_what_was_asked_for() {
        let page = Page::new("", "http://a.test/s?q=remote&kind=Full-time&city=Port+Louis#top", "", None);
        let stems = page.query_stems();
        assert!(
            ["full", "port", "louis"].iter().all(|word| stems.contains(&(*word).to_owned())),
            "{stems:?}"
        );
        assert!(!stems.contains(&"remot".to_owned()));
    }
}
