//! Reads a judge's replies. Only a clear word counts, and what is no clear word is told apart from a no.

/// What a reply says to a question that has two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Yes,
    No,
    /// No line gives an answer.
    Missing,
    /// Some line does, but it says neither or both, or others contradict it.
    Unclear,
}

/// `Verdict: SUCCESS` or `Verdict: NOT SUCCESS`.
pub(super) fn verdict(reply: &str) -> Reading {
    on_line(reply, "verdict", |words| {
        let words = upper(words);
        let negative = words.matches("NOT SUCCESS").count();
        let positive = words.matches("SUCCESS").count() - negative;
        match (positive, negative) {
            (1.., 0) => Some(true),
            (0, 1..) => Some(false),
            _ => None,
        }
    })
}

/// `Blocked: YES` or `Blocked: NO`.
pub(super) fn blocked(reply: &str) -> Reading {
    on_line(reply, "blocked", yes)
}

/// YES or NO on a line of its own, or as the last word that is either.
pub(super) fn relevant(reply: &str) -> Reading {
    match reply.lines().rev().find_map(yes) {
        Some(true) => Reading::Yes,
        Some(false) => Reading::No,
        None => Reading::Missing,
    }
}

/// The lines named so, read. The last line of a reply decides, as it was asked for; elsewhere such lines may be quoted
/// from a page, so that they count only if they agree.
fn on_line(reply: &str, name: &str, read: impl Fn(&str) -> Option<bool>) -> Reading {
    let lines: Vec<Option<bool>> = reply.lines().filter_map(|line| after(line, name)).map(&read).collect();
    let Some(last) = lines.last() else { return Reading::Missing };
    let ending = reply.lines().rev().find(|line| line.contains(char::is_alphanumeric));
    let ends_with_it = ending.is_some_and(|line| after(line, name).is_some());
    match last {
        Some(yes) if ends_with_it || lines.iter().all(|one| one == last) => {
            if *yes {
                Reading::Yes
            } else {
                Reading::No
            }
        }
        _ => Reading::Unclear,
    }
}

/// The step, counted from 0, that a `Step: 3` line names.
pub(super) fn blocking_step(reply: &str) -> Option<usize> {
    let line = reply.lines().filter_map(|line| after(line, "step")).reduce(|_, later| later)?;
    upper(line).split(' ').next()?.parse::<usize>().ok()?.checked_sub(1)
}

fn yes(line: &str) -> Option<bool> {
    let words = upper(line);
    let has = |word: &str| words.split(' ').any(|one| one == word);
    match (has("YES"), has("NO")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// What follows `name:` on a line, whatever markup surrounds the name.
fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (head, rest) = line.split_once(':')?;
    let head: String = head.chars().filter(|c| c.is_alphanumeric()).collect();
    head.eq_ignore_ascii_case(name).then_some(rest)
}

/// Upper case words with single spaces, without markup.
fn upper(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    clean.to_uppercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_verdict_counts() {
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
        ] {
            assert_eq!(verdict(reply), wanted, "{reply:?}");
        }
    }

    #[test]
    fn a_verdict_quoted_from_a_page_decides_nothing() {
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
    fn the_step_that_blocked_is_read_when_it_is_named() {
        assert_eq!(blocking_step("A captcha.\nStep: 3\nBlocked: YES"), Some(2));
        assert_eq!(blocking_step("**Step:** 1."), Some(0));
        for reply in ["Step: 0", "Step: the third", "step 3", ""] {
            assert_eq!(blocking_step(reply), None, "{reply:?}");
        }
    }

    #[test]
    fn blocked_and_relevant_want_a_plain_word() {
        for (reply, wanted) in [
            ("A captcha.\nBlocked: YES", Reading::Yes),
            ("Blocked: NO", Reading::No),
            ("Blocked: YES | NO", Reading::Unclear),
            ("YES", Reading::Missing),
        ] {
            assert_eq!(blocked(reply), wanted, "{reply:?}");
        }
        for (reply, wanted) in [
            ("It shows the price.\nYES", Reading::Yes),
            ("NO", Reading::No),
            ("Yes and no", Reading::Missing),
            ("", Reading::Missing),
        ] {
            assert_eq!(relevant(reply), wanted, "{reply:?}");
        }
    }
}
