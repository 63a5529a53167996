//! The judge's words, sorted by what they are about: blocking, support of the answer, each rubric item, the reference.
//! Words that follow no form we know are shown as they are.

use proto::trajectory::Evaluation;
use serde::Serialize;

/// What one piece of the judge's words is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum About {
    Blocking,
    /// Criterion B: is the answer supported by the screenshots?
    Support,
    /// Criterion A of one rubric item, counted from 0.
    Rubric {
        item: usize,
    },
    Reference,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Words<'a> {
    pub about: About,
    /// What the verdict line says; `null` when there is none, or it says both.
    pub passed: Option<bool>,
    pub text: &'a str,
}

/// The words one by one. Of a rubric item that nobody was asked about there are none.
pub(super) fn words(evaluation: &Evaluation) -> Vec<Words<'_>> {
    let texts = match evaluation {
        Evaluation::Text(text) => std::slice::from_ref(text),
        Evaluation::Texts(texts) => texts.as_slice(),
    };
    texts.iter().filter(|text| !text.trim().is_empty()).map(|text| one(text)).collect()
}

fn one(text: &str) -> Words<'_> {
    let headings = [
        ("Blocking:", About::Blocking),
        ("Criterion B:", About::Support),
        ("Reference answer:", About::Reference),
    ];
    for (heading, about) in headings {
        if let Some(rest) = text.strip_prefix(heading) {
            return Words { about, passed: passed(about, rest), text: rest.trim() };
        }
    }
    if let Some((item, rest)) = rubric_item(text) {
        let about = About::Rubric { item };
        return Words { about, passed: passed(about, rest), text: rest.trim() };
    }
    Words { about: About::Other, passed: passed(About::Other, text), text: text.trim() }
}

/// `Criterion A, item 3: …`, counted from 1 there.
fn rubric_item(text: &str) -> Option<(usize, &str)> {
    let (number, rest) = text.strip_prefix("Criterion A, item ")?.split_once(':')?;
    Some((number.parse::<usize>().ok()?.checked_sub(1)?, rest))
}

fn passed(about: About, text: &str) -> Option<bool> {
    let heading = if about == About::Blocking { "BLOCKED" } else { "VERDICT" };
    let line = text.lines().rev().find_map(|line| {
        let (head, rest) = line.split_once(':')?;
        let head: String = head.chars().filter(|letter| letter.is_alphanumeric()).collect();
        head.eq_ignore_ascii_case(heading).then(|| rest.to_uppercase())
    })?;
    let words: Vec<&str> =
        line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let count = |word: &str| words.iter().filter(|one| **one == word).count();
    let (good, bad) = match about {
        About::Blocking => (count("NO") > 0, count("YES") > 0),
        _ => (count("SUCCESS") > count("NOT"), count("NOT") > 0),
    };
    (good != bad).then_some(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_is_told_and_its_verdict_read() {
        let table = [
            ("Blocking: A captcha.\nBlocked: YES", About::Blocking, Some(false)),
            ("Blocking: No.\nBlocked: NO", About::Blocking, Some(true)),
            ("Criterion B: Shown.\n**Verdict:** SUCCESS", About::Support, Some(true)),
            ("Criterion A, item 2: Not shown.\nVerdict: NOT SUCCESS", About::Rubric { item: 1 }, Some(false)),
            ("Criterion A, item 0: x", About::Other, None),
            ("Criterion A, item x: y", About::Other, None),
            ("Reference answer: I cannot say", About::Reference, None),
            ("anything else", About::Other, None),
            ("Verdict: SUCCESS | NOT SUCCESS", About::Other, None),
        ];
        for (text, about, passed) in table {
            let evaluation = Evaluation::Text(text.to_owned());
            let words = words(&evaluation);
            assert_eq!((words[0].about, words[0].passed), (about, passed), "{text:?}");
        }
        assert!(words(&Evaluation::Text("  ".into())).is_empty());
        assert!(words(&Evaluation::Texts(Vec::new())).is_empty());
    }
}
