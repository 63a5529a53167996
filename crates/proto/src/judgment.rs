//! The headings of the judge's texts in `Reward.evaluation`. They tell viewers what a text is about, and are those
//! that the Python system's viewer reads.

const BLOCKING: &str = "[Blocking]";
const SUPPORT: &str = "[Criterion B - Anti-Hallucination]";
const REFERENCE: &str = "[Reference Answer Evaluation]";
const RUBRIC_ITEM: &str = "[Criterion A - Fact ";

/// What a text of the judge is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JudgmentSubject {
    /// Whether the website blocked the agent.
    Blocking,
    /// Criterion B: whether the screenshots support the answer.
    Support,
    /// Criterion A for one rubric item, counted from 0.
    RubricItem(usize),
    /// Whether the answer matches the reference answer.
    Reference,
}

impl JudgmentSubject {
    /// Returns a text under the heading of its subject.
    pub fn entitle(self, text: &str) -> String {
        match self {
            Self::Blocking => format!("{BLOCKING} {text}"),
            Self::Support => format!("{SUPPORT} {text}"),
            Self::RubricItem(item) => format!("{RUBRIC_ITEM}{}] {text}", item + 1),
            Self::Reference => format!("{REFERENCE} {text}"),
        }
    }

    /// Reads the heading of a text. Returns the subject and the rest, or `None` if there is no known heading.
    pub fn of(text: &str) -> Option<(Self, &str)> {
        // Version 0.1 had headings of its own.
        let headings = [
            (BLOCKING, Self::Blocking),
            ("Blocking:", Self::Blocking),
            (SUPPORT, Self::Support),
            ("Criterion B:", Self::Support),
            (REFERENCE, Self::Reference),
            ("Reference answer:", Self::Reference),
        ];
        let plain =
            headings.iter().find_map(|(heading, subject)| Some((*subject, text.strip_prefix(heading)?)));
        plain
            .or_else(|| rubric_item(text, RUBRIC_ITEM, ']'))
            .or_else(|| rubric_item(text, "Criterion A, item ", ':'))
    }
}

/// Reads the heading of a rubric item. In headings, items are counted from 1.
fn rubric_item<'a>(text: &'a str, start: &str, end: char) -> Option<(JudgmentSubject, &'a str)> {
    let (number, rest) = text.strip_prefix(start)?.split_once(end)?;
    Some((JudgmentSubject::RubricItem(number.parse::<usize>().ok()?.checked_sub(1)?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_headings_are_read_back() {
        let subjects = [
            JudgmentSubject::Blocking,
            JudgmentSubject::Support,
            JudgmentSubject::RubricItem(0),
            JudgmentSubject::RubricItem(11),
            JudgmentSubject::Reference,
        ];
        for subject in subjects {
            assert_eq!(JudgmentSubject::of(&subject.entitle("why")), Some((subject, " why")));
        }
        assert_eq!(JudgmentSubject::RubricItem(1).entitle("x"), "[Criterion A - Fact 2] x");
    }

    #[test]
    fn headings_of_earlier_version_are_read() {
        let table = [
            ("Blocking: x", Some(JudgmentSubject::Blocking)),
            ("Criterion B: x", Some(JudgmentSubject::Support)),
            ("Criterion A, item 2: x", Some(JudgmentSubject::RubricItem(1))),
            ("Reference answer: x", Some(JudgmentSubject::Reference)),
            ("Criterion A, item 0: x", None),
            ("[Criterion A - Fact x] y", None),
            ("anything else", None),
        ];
        for (text, subject) in table {
            assert_eq!(JudgmentSubject::of(text).map(|(subject, _)| subject), subject, "{text}");
        }
    }
}
