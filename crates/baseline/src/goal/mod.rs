//! What a task asks for, read from its words alone: the kind of answer, the things it names, superlatives, limits and
//! instructions. Grammar by rule of thumb; whatever it misreads costs a task, never a crash.

mod asked;
mod extreme;
mod limit;
mod order;
mod subject;

pub(crate) use asked::{Arithmetic, Kind};
pub(crate) use extreme::Extreme;
pub(crate) use limit::{Bound, Limit};
pub(crate) use order::Order;
pub(crate) use subject::Subject;

use crate::words;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// What is asked for: the stems behind which, what or how many.
    pub(crate) noun: Vec<String>,
    pub(crate) arithmetic: Option<Arithmetic>,
    /// Things the task names, in its order.
    pub(crate) subjects: Vec<Subject>,
    /// Stems of the question that are not part of a name for sure.
    pub(crate) wanted: Vec<String>,
    /// Stems of the clause that only says which thing is meant: `that flows through …`.
    pub(crate) relative: Vec<String>,
    /// All stems of the task that carry meaning.
    pub(crate) words: Vec<String>,
    pub(crate) extremes: Vec<Extreme>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) orders: Vec<Order>,
}

/// Longer tasks are read up to here.
const LONGEST: usize = 4_000;

impl Goal {
    pub(crate) fn read(task: &str) -> Self {
        let text: String = task.chars().take(LONGEST).collect();
        let question = question(&text);
        let asked = asked::read(question);
        let extremes = extreme::read(&text);
        let orders = order::read(&text);
        let subjects = subject::read(&text);
        let named: Vec<&String> = subjects.iter().flat_map(|subject| &subject.strong).collect();
        let wanted = words::content(question).into_iter().filter(|stem| !named.contains(&stem)).collect();
        Self {
            kind: asked.kind,
            noun: asked.noun,
            arithmetic: asked.arithmetic,
            relative: relative(question, subjects.first()),
            words: words::content(&text),
            limits: limit::read(&text),
            subjects,
            wanted,
            extremes,
            orders,
            text,
        }
    }

    /// The thing the question is about.
    pub(crate) fn subject(&self) -> Option<&Subject> {
        self.subjects.first()
    }

    /// Asks for one out of many, or for how many there are: a list is needed, not a page.
    pub(crate) fn wants_list(&self) -> bool {
        !self.extremes.is_empty() || !self.limits.is_empty() || self.counts()
    }

    /// `How many full-time jobs are there in …`: nothing but a number of things.
    pub(crate) fn counts(&self) -> bool {
        self.kind == Kind::Count && self.extremes.is_empty() && self.arithmetic.is_none()
    }
}

/// The words of the clause around the subject, when it is not the main one.
fn relative(question: &str, subject: Option<&Subject>) -> Vec<String> {
    let found = subject.and_then(|subject| question.find(&subject.text));
    let Some(at) = found else { return Vec::new() };
    let opens = [" that ", " which ", " who ", " whose ", " where "]
        .iter()
        .filter_map(|word| question[..at].rfind(word))
        .max();
    let main = [" which ", " what ", "Which ", "Who "].iter().filter_map(|word| question.find(word)).min();
    let Some(from) = opens.filter(|from| main.is_none_or(|main| main < *from)) else { return Vec::new() };
    let clause = question[from..].split([',', '?', ';']).next().unwrap_or_default();
    words::content(clause)
}

/// The sentence with the question mark; without one, all of it.
fn question(text: &str) -> &str {
    let Some(end) = text.rfind('?') else { return text };
    let head = &text[..end];
    let from = [". ", "! ", "? ", ": ", "\n"]
        .iter()
        .filter_map(|sign| head.rfind(sign).map(|at| at + sign.len()))
        .max();
    text.get(from.unwrap_or(0)..=end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_the_last_sentence_that_asks() {
        assert_eq!(question("Find the lamp. How much does it cost? (In dollars.)"), "How much does it cost?");
        assert_eq!(question("Buy a lamp"), "Buy a lamp");
    }

    #[test]
    fn the_clause_around_the_subject_is_known() {
        let goal = Goal::read("On which hill does the brook rise that runs through Lyon?");
        assert_eq!(goal.relative, words::content("runs through Lyon"));
        for plain in ["Who is the mayor of Lyon?", "In which city was the teacher of Elin Dahl born?"] {
            assert!(Goal::read(plain).relative.is_empty(), "{plain}");
        }
    }

    #[test]
    fn a_task_is_taken_apart() {
        let goal = Goal::read("What is the cheapest chair in the category Furniture that costs $80 or less?");
        assert_eq!(goal.subject().map(|subject| subject.text.as_str()), Some("Furniture"));
        assert_eq!((goal.extremes.len(), goal.limits.len()), (1, 1));
        assert!(goal.wants_list());
        let plain = Goal::read("What is the price of the Oak table?");
        assert!(!plain.wants_list() && plain.wanted == words::content("price table"), "{plain:?}");
    }
}
