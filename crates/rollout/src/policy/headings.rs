//! The headings of an answer (Memory, Progress, Intention, Action): its sections, and where a tool call is looked for.

use std::borrow::Cow;

/// The position of the headings in an answer, which decides where a tool call is looked for. Text under Memory, Progress
/// or Intention may quote a page that shows a tool call, so with such headings only the text after the Action heading
/// counts.
pub(super) struct Layout<'a> {
    answer: &'a str,
    /// The offset of the Action heading.
    action: Option<usize>,
    /// Whether another heading comes before the Action heading.
    has_earlier_heading: bool,
}

impl<'a> Layout<'a> {
    /// Finds the headings. The Action heading is the first one after the first heading of each other kind: one before
    /// that may be quoted in a section, and one later may belong to a next turn that the model made up.
    pub(super) fn of(answer: &'a str) -> Self {
        let mut first_of_kind = [None; 3];
        let mut actions = Vec::new();
        let mut start = 0;
        for line in answer.split_inclusive('\n') {
            // The prompt asks for capitalized headings; in lower case it may be a key of the tool call.
            let is_capitalized = line.trim_start_matches(MARKUP).starts_with(char::is_uppercase);
            match heading(line).filter(|_| is_capitalized).map(|(heading, _)| heading) {
                Some(Heading::Memory) => drop(first_of_kind[0].get_or_insert(start)),
                Some(Heading::Progress) => drop(first_of_kind[1].get_or_insert(start)),
                Some(Heading::Intention) => drop(first_of_kind[2].get_or_insert(start)),
                Some(Heading::Action) => actions.push(start),
                None => {}
            }
            start += line.len();
        }
        let last_kind = first_of_kind.iter().flatten().max().copied().unwrap_or(0);
        let action = actions.iter().find(|offset| **offset >= last_kind).or(actions.first()).copied();
        let has_earlier_heading =
            first_of_kind.iter().flatten().any(|offset| action.is_some_and(|action| *offset < action));
        Self { answer, action, has_earlier_heading }
    }

    /// Returns the parts of the answer that may contain a call, in the order in which they are searched. Text before a
    /// part is replaced by spaces, so that offsets stay valid.
    pub(super) fn search_areas(&self) -> Vec<Cow<'a, str>> {
        let Some(action) = self.action else { return vec![Cow::Borrowed(self.answer)] };
        let mut areas = vec![Cow::Owned(" ".repeat(action) + &self.answer[action..])];
        if !self.has_earlier_heading {
            areas.push(Cow::Borrowed(&self.answer[..action]));
        }
        areas
    }
}

/// The sections of an answer, by heading.
#[derive(Default)]
pub(super) struct Sections {
    pub(super) memory: String,
    pub(super) progress: String,
    pub(super) intention: String,
    pub(super) action: String,
}

impl Sections {
    pub(super) fn parse(text: &str) -> Self {
        let mut sections = Self::default();
        let mut current = None;
        for line in text.lines() {
            if let Some((heading, rest)) = heading(line) {
                current = Some(heading);
                sections.push_line(heading, rest);
            } else if let Some(heading) = current {
                sections.push_line(heading, line);
            }
        }
        for section in
            [&mut sections.memory, &mut sections.progress, &mut sections.intention, &mut sections.action]
        {
            *section =
                section.trim().trim_end_matches("```json").trim_end_matches("```").trim_end().to_owned();
        }
        sections
    }

    fn push_line(&mut self, heading: Heading, line: &str) {
        let section = match heading {
            Heading::Memory => &mut self.memory,
            Heading::Progress => &mut self.progress,
            Heading::Intention => &mut self.intention,
            Heading::Action => &mut self.action,
        };
        if !section.is_empty() {
            section.push('\n');
        }
        section.push_str(line);
    }
}

#[derive(Clone, Copy)]
enum Heading {
    Memory,
    Progress,
    Intention,
    Action,
}

/// Characters of markup that may come before a heading.
const MARKUP: [char; 5] = [' ', '\t', '*', '#', '-'];

/// Parses a heading (`Memory: …`, `**Memory:** …`, `## Memory: …`) and the text after it.
fn heading(line: &str) -> Option<(Heading, &str)> {
    let line = line.trim_start_matches(MARKUP);
    let (name, rest) = line.split_at_checked(line.find(':')?)?;
    let rest = rest[1..].trim_start_matches('*').trim();
    let name = name.trim_end_matches(['*', ' ']);
    let known = [
        ("memory", Heading::Memory),
        ("progress", Heading::Progress),
        ("intention", Heading::Intention),
        ("action", Heading::Action),
    ];
    known.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, heading)| (heading, rest))
}
