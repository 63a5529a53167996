//! Parses what a task asks for: the kind of answer, the subjects it names, superlatives, limits and instructions.
//! The grammar is heuristic: a misread task may fail, but never causes a panic.

mod instruction;
mod limit;
mod question;
mod subject;
mod superlative;

pub(crate) use instruction::Instruction;
pub(crate) use limit::{Bound, Limit};
pub(crate) use question::{AnswerKind, Arithmetic};
pub(crate) use subject::Subject;
pub(crate) use superlative::Superlative;

use crate::nlp;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) text: String,
    pub(crate) kind: AnswerKind,
    /// What is asked for: the stems after "which", "what" or "how many".
    pub(crate) noun: Vec<String>,
    pub(crate) arithmetic: Option<Arithmetic>,
    /// Things that the task names, in the order of the text.
    pub(crate) subjects: Vec<Subject>,
    /// Stems of the question that are not required stems of a subject.
    pub(crate) wanted: Vec<String>,
    /// Stems of the relative clause that identifies the subject: `that flows through …`.
    pub(crate) relative_clause: Vec<String>,
    /// The stems of all words of the task that are not stop words.
    pub(crate) stems: Vec<String>,
    pub(crate) superlatives: Vec<Superlative>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) instructions: Vec<Instruction>,
}

/// The rest of longer tasks is ignored.
const MAX_TASK_CHARS: usize = 4_000;

impl Goal {
    pub(crate) fn parse(task: &str) -> Self {
        let text: String = task.chars().take(MAX_TASK_CHARS).collect();
        let sentence = question_sentence(&text);
        let question = question::parse(sentence);
        let subjects = subject::parse(&text);
        let names: Vec<&String> = subjects.iter().flat_map(|subject| &subject.required).collect();
        let wanted = nlp::content_stems(sentence).into_iter().filter(|stem| !names.contains(&stem)).collect();
        Self {
            kind: question.kind,
            noun: question.noun,
            arithmetic: question.arithmetic,
            relative_clause: relative_clause(sentence, subjects.first()),
            stems: nlp::content_stems(&text),
            superlatives: superlative::parse(&text),
            limits: limit::parse(&text),
            instructions: instruction::parse(&text),
            subjects,
            wanted,
            text,
        }
    }

    /// Returns the thing that the question is about.
    pub(crate) fn subject(&self) -> Option<&Subject> {
        self.subjects.first()
    }

    /// Whether the answer is found on a list of things rather than on the page of one thing.
    pub(crate) fn needs_list(&self) -> bool {
        !self.superlatives.is_empty() || !self.limits.is_empty() || self.is_count()
    }

    /// Whether the task only asks for a number of things: `How many full-time jobs are there in …`.
    pub(crate) fn is_count(&self) -> bool {
        self.kind == AnswerKind::Count && self.superlatives.is_empty() && self.arithmetic.is_none()
    }
}

/// Returns the stems of the relative clause that contains the subject, if there is one.
fn relative_clause(question: &str, subject: Option<&Subject>) -> Vec<String> {
    let position = subject.and_then(|subject| question.find(&subject.text));
    let Some(position) = position else { return Vec::new() };
    let clause_start = [" that ", " which ", " who ", " whose ", " where "]
        .iter()
        .filter_map(|word| question[..position].rfind(word))
        .max();
    let main_clause =
        [" which ", " what ", "Which ", "Who "].iter().filter_map(|word| question.find(word)).min();
    let clause_start = clause_start.filter(|start| main_clause.is_none_or(|main| main < *start));
    let Some(clause_start) = clause_start else { return Vec::new() };
    let clause = question[clause_start..].split([',', '?', ';']).next().unwrap_or_default();
    nlp::content_stems(clause)
}

/// Returns the last sentence with a question mark, or the whole text if there is none.
fn question_sentence(text: &str) -> &str {
    let Some(end) = text.rfind('?') else { return text };
    let before = &text[..end];
    let start = [". ", "! ", "? ", ": ", "\n"]
        .iter()
        .filter_map(|separator| before.rfind(separator).map(|index| index + separator.len()))
        .max();
    text.get(start.unwrap_or(0)..=end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_question_sentence_is_found() {
        assert_eq!(
            question_sentence("Find the lamp. How much does it cost? (In dollars.)"),
            "How much does it cost?"
        );
        assert_eq!(question_sentence("Buy a lamp"), "Buy a lamp");
    }

    #[test]
    fn relative_clause_of_the_subject_is_found() {
        let goal = Goal::parse("On which hill does the brook rise that runs through Lyon?");
        assert_eq!(goal.relative_clause, nlp::content_stems("runs through Lyon"));
        for plain in ["Who is the mayor of Lyon?", "In which city was the teacher of Elin Dahl born?"] {
            assert!(Goal::parse(plain).relative_clause.is_empty(), "{plain}");
        }
    }

    #[test]
    fn task_is_parsed() {
        let goal =
            Goal::parse("What is the cheapest chair in the category Furniture that costs $80 or less?");
        assert_eq!(goal.subject().map(|subject| subject.text.as_str()), Some("Furniture"));
        assert_eq!((goal.superlatives.len(), goal.limits.len()), (1, 1));
        assert!(goal.needs_list());
        let plain = Goal::parse("What is the price of the Oak table?");
        assert!(!plain.needs_list() && plain.wanted == nlp::content_stems("price table"), "{plain:?}");
    }
}
