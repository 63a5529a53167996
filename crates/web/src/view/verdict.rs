//! Parses the judge's texts: what each is about (blocking, support of the answer, a rubric item, the reference answer) and its
//! verdict. A text in an unknown format is shown unchanged.

use proto::{judgment::JudgmentSubject, trajectory::Evaluation};
use serde::Serialize;

/// What a text of the judge is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Subject {
    Blocking,
    /// Criterion B: whether the screenshots support the answer.
    Support,
    /// Criterion A for one rubric item, counted from 0.
    Rubric {
        item: usize,
    },
    Reference,
    Other,
}

/// One text of the judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct JudgeText<'a> {
    pub about: Subject,
    /// The verdict; `None` if the verdict line is missing or contradictory.
    pub passed: Option<bool>,
    pub text: &'a str,
}

/// Parses the texts of an evaluation. A rubric item that was not judged has none.
pub(super) fn judge_texts(evaluation: &Evaluation) -> Vec<JudgeText<'_>> {
    let texts = match evaluation {
        Evaluation::Text(text) => std::slice::from_ref(text),
        Evaluation::Texts(texts) => texts.as_slice(),
    };
    texts.iter().filter(|text| !text.trim().is_empty()).map(|text| parse(text)).collect()
}

fn parse(text: &str) -> JudgeText<'_> {
    let (about, rest) = match JudgmentSubject::of(text) {
        Some((JudgmentSubject::Blocking, rest)) => (Subject::Blocking, rest),
        Some((JudgmentSubject::Support, rest)) => (Subject::Support, rest),
        Some((JudgmentSubject::RubricItem(item), rest)) => (Subject::Rubric { item }, rest),
        Some((JudgmentSubject::Reference, rest)) => (Subject::Reference, rest),
        None => (Subject::Other, text),
    };
    JudgeText { about, passed: passed(about, rest), text: rest.trim() }
}

/// Reads the verdict line, the last line that starts with `Verdict:` (or `Blocked:`).
fn passed(about: Subject, text: &str) -> Option<bool> {
    let heading = if about == Subject::Blocking { "BLOCKED" } else { "VERDICT" };
    let line = text.lines().rev().find_map(|line| {
        let (head, rest) = line.split_once(':')?;
        let head: String = head.chars().filter(|letter| letter.is_alphanumeric()).collect();
        head.eq_ignore_ascii_case(heading).then(|| rest.to_uppercase())
    })?;
    let words: Vec<&str> =
        line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let count = |word: &str| words.iter().filter(|found| **found == word).count();
    let (good, bad) = match about {
        Subject::Blocking => (count("NO") > 0, count("YES") > 0),
        _ => (count("SUCCESS") > count("NOT"), count("NOT") > 0),
    };
    (good != bad).then_some(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_verdicts_are_parsed() {
        let table = [
            ("[Blocking] A captcha.\nBlocked: YES", Subject::Blocking, Some(false)),
            ("Blocking: No.\nBlocked: NO", Subject::Blocking, Some(true)),
            ("[Criterion B - Anti-Hallucination] Shown.\n**Verdict:** SUCCESS", Subject::Support, Some(true)),
            (
                "Criterion A, item 2: Not shown.\nVerdict: NOT SUCCESS",
                Subject::Rubric { item: 1 },
                Some(false),
            ),
            ("Reference answer: I cannot say", Subject::Reference, None),
            ("anything else", Subject::Other, None),
            ("Verdict: SUCCESS | NOT SUCCESS", Subject::Other, None),
        ];
        for (text, about, passed) in table {
            let evaluation = Evaluation::Text(text.to_owned());
            let texts = judge_texts(&evaluation);
            assert_eq!((texts[0].about, texts[0].passed), (about, passed), "{text:?}");
        }
        assert!(judge_texts(&Evaluation::Text("  ".into())).is_empty());
        assert!(judge_texts(&Evaluation::Texts(Vec::new())).is_empty());
    }
}
