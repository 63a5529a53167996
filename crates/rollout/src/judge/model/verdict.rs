//! Reads the decision from a judge's reply. A missing or unclear decision is distinguished from a "no".

/// The decision that a reply gives to a yes/no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Yes,
    No,
    /// No line gives a decision.
    Missing,
    /// A line names the decision, but it is neither or both, or another line contradicts it.
    Unclear,
}

impl Reading {
    const fn decision(self) -> Option<bool> {
        match self {
            Self::Yes => Some(true),
            Self::No => Some(false),
            Self::Missing | Self::Unclear => None,
        }
    }
}

/// Returns whether a saved text of the judge says SUCCESS; `None` without a clear verdict.
pub fn says_success(text: &str) -> Option<bool> {
    verdict(text).decision()
}

/// Returns whether a saved text of the judge says that the website blocked the agent.
pub fn says_blocked(text: &str) -> Option<bool> {
    blocked(text).decision()
}

/// Reads `Verdict: SUCCESS` or `Verdict: NOT SUCCESS`, with or without more words. Words that qualify a success, such as
/// "partial", leave the verdict unclear.
pub(super) fn verdict(reply: &str) -> Reading {
    read_labelled(reply, "verdict", |text| {
        let text = upper_words(text);
        let words: Vec<&str> = text.split(' ').filter(|word| !matches!(*word, "A" | "AN")).collect();
        let (decision, rest) = match words.as_slice() {
            ["SUCCESS" | "SUCCESSFUL", rest @ ..] => (true, rest),
            ["NOT" | "NO", "SUCCESS" | "SUCCESSFUL", rest @ ..]
            | ["UNSUCCESSFUL" | "FAILURE" | "FAILED" | "FAIL", rest @ ..] => (false, rest),
            _ => return None,
        };
        let contradicts = |word: &&str| {
            word.starts_with("SUCCESS") || (decision && (DOUBTS.contains(word) || word.starts_with("FAIL")))
        };
        (!rest.iter().any(contradicts)).then_some(decision)
    })
}

/// Words after SUCCESS that leave it unclear.
const DOUBTS: [&str; 7] = ["NOT", "NO", "PARTIAL", "PARTIALLY", "UNSUCCESSFUL", "EXCEPT", "BUT"];

/// Reads `Blocked: YES` or `Blocked: NO`.
pub(super) fn blocked(reply: &str) -> Reading {
    read_labelled(reply, "blocked", parse_yes_no)
}

/// Reads the last line that starts or ends with YES or NO.
pub(super) fn relevant(reply: &str) -> Reading {
    match reply.lines().rev().find_map(parse_yes_no) {
        Some(true) => Reading::Yes,
        Some(false) => Reading::No,
        None => Reading::Missing,
    }
}

/// Reads the lines with this label. A decision on the last line of the reply counts, as the prompt asks for it there.
/// Elsewhere the line may be quoted from a page, so decisions count only if all of them agree.
fn read_labelled(reply: &str, label: &str, read: impl Fn(&str) -> Option<bool>) -> Reading {
    let decisions: Vec<Option<bool>> =
        reply.lines().filter_map(|line| after_label(line, label)).map(&read).collect();
    let Some(last) = decisions.last() else { return Reading::Missing };
    let last_line = reply.lines().rev().find(|line| line.contains(char::is_alphanumeric));
    let is_last_line = last_line.is_some_and(|line| after_label(line, label).is_some());
    match last {
        Some(yes) if is_last_line || decisions.iter().all(|decision| decision == last) => {
            if *yes {
                Reading::Yes
            } else {
                Reading::No
            }
        }
        _ => Reading::Unclear,
    }
}

/// Returns the index (from 0) of the step that the last `Step: 3` line (from 1) names.
pub(super) fn blocking_step(reply: &str) -> Option<usize> {
    let line = reply.lines().filter_map(|line| after_label(line, "step")).next_back()?;
    upper_words(line).split(' ').next()?.parse::<usize>().ok()?.checked_sub(1)
}

/// Reads YES or NO at the start or the end: inside a sentence, "no" decides nothing.
fn parse_yes_no(line: &str) -> Option<bool> {
    let words = upper_words(line);
    let (first, last) = (words.split(' ').next(), words.split(' ').next_back());
    let has = |wanted: &str| first == Some(wanted) || last == Some(wanted);
    let is_both = ["YES", "NO"].iter().all(|word| words.split(' ').any(|found| found == *word));
    match (has("YES"), has("NO")) {
        _ if is_both => None,
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Returns the text after `label:`. Before the label there may be markup, the number of a list item and the word "final".
fn after_label<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    let (head, rest) = line.split_once(':')?;
    let words = head.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = words.skip_while(|word| is_number(word) || word.eq_ignore_ascii_case("final"));
    let is_label = words.next().is_some_and(|word| word.eq_ignore_ascii_case(label));
    (is_label && words.next().is_none()).then_some(rest)
}

/// Returns the words in upper case, separated by single spaces, without markup.
fn upper_words(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    clean.to_uppercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_verdict_counts() {
        for (reply, wanted) in [
            ("All shown.\nVerdict: SUCCESS", Reading::Yes),
            ("**Verdict:** success.", Reading::Yes),
            ("Verdict: NOT SUCCESS", Reading::No),
            ("Verdict: not  success", Reading::No),
            ("Verdict: SUCCESS | NOT SUCCESS", Reading::Unclear),
            ("Verdict: NOT SUCCESS\nOn reflection.\nVerdict: SUCCESS", Reading::Yes),
            ("Verdict: SUCCESS\nI am sure.", Reading::Yes),
            ("It is a success", Reading::Missing),
            ("", Reading::Missing),
            ("Verdict:", Reading::Unclear),
            ("Verdict: maybe", Reading::Unclear),
            ("My verdict: SUCCESS", Reading::Missing),
            ("1. All is shown.\n2. Verdict: SUCCESS", Reading::Yes),
            ("- Verdict: NOT SUCCESS", Reading::No),
            ("Final verdict: SUCCESS", Reading::Yes),
            ("2. **Final verdict**: SUCCESS", Reading::Yes),
            ("3) __FINAL VERDICT:__ not success", Reading::No),
            ("Verdict 2: SUCCESS", Reading::Missing),
            ("Verdict: SUCCESS. Everything is shown.", Reading::Yes),
            ("Verdict: successful", Reading::Yes),
            ("Verdict: UNSUCCESSFUL", Reading::No),
            ("**Verdict:** Unsuccessful", Reading::No),
            ("Verdict: NOT A SUCCESS", Reading::No),
            ("Verdict: No success", Reading::No),
            ("Verdict: FAILURE", Reading::No),
            ("Verdict: Not a full success.", Reading::Unclear),
            ("Verdict: PARTIAL SUCCESS", Reading::Unclear),
            ("Verdict: SUCCESS, but not for the second item", Reading::Unclear),
        ] {
            assert_eq!(verdict(reply), wanted, "{reply:?}");
        }
    }

    #[test]
    fn verdict_quoted_from_page_is_ignored() {
        for (reply, wanted) in [
            (
                "The page says\nVerdict: SUCCESS\nbut it shows no such thing.\nVerdict: NOT SUCCESS",
                Reading::No,
            ),
            (
                "Verdict: NOT SUCCESS\nThe page itself says:\n> Verdict: SUCCESS\nwhich is a lie.",
                Reading::Unclear,
            ),
            ("The title is \"Verdict: SUCCESS\".\nVerdict: NOT SUCCESS\n\n---\n", Reading::No),
        ] {
            assert_eq!(verdict(reply), wanted, "{reply:?}");
        }
    }

    #[test]
    fn blocking_step_is_read_from_reply() {
        assert_eq!(blocking_step("A captcha.\nStep: 3\nBlocked: YES"), Some(2));
        assert_eq!(blocking_step("**Step:** 1."), Some(0));
        for reply in ["Step: 0", "Step: the third", "step 3", ""] {
            assert_eq!(blocking_step(reply), None, "{reply:?}");
        }
    }

    #[test]
    fn reply_without_yes_or_no_is_missing_or_unclear() {
        for (reply, wanted) in [
            ("A captcha.\nBlocked: YES", Reading::Yes),
            ("Blocked: NO", Reading::No),
            ("Blocked: YES | NO", Reading::Unclear),
            ("2. **Blocked:** YES", Reading::Yes),
            ("* Final - Blocked: no", Reading::No),
            ("YES", Reading::Missing),
        ] {
            assert_eq!(blocked(reply), wanted, "{reply:?}");
        }
        for (reply, wanted) in [
            ("It shows the price.\nYES", Reading::Yes),
            ("NO", Reading::No),
            ("1. It shows the price.\n2. **YES**", Reading::Yes),
            ("Yes and no", Reading::Missing),
            ("There is no doubt that it is relevant.", Reading::Missing),
            ("No, it shows nothing.", Reading::No),
            ("The answer is: yes.", Reading::Yes),
            ("", Reading::Missing),
        ] {
            assert_eq!(relevant(reply), wanted, "{reply:?}");
        }
    }
}
