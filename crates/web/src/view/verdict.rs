//! Parses the judge's texts: what each is about (blocking, support of the answer, a rubric item, the reference answer) and its
//! verdict. A text in an unknown format is shown unchanged.

use proto::{judgment::JudgmentSubject, trajectory::Evaluation};
use rollout::judge;
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

/// Reads the verdict as the judge's replies are read in a run.
fn passed(about: Subject, text: &str) -> Option<bool> {
    match about {
        Subject::Blocking => judge::says_blocked(text).map(|is_blocked| !is_blocked),
        _ => judge::says_success(text),
    }
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
            (
                "[Criterion A - Fact 1] Shown.\n2. **Final verdict**: SUCCESS",
                Subject::Rubric { item: 0 },
                Some(true),
            ),
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
