//! Reads a judge's replies. Only a clear word counts.

/// What the verdict line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Success,
    NotSuccess,
    /// No verdict line, or one that says both.
    Unclear,
}

impl Reading {
    /// The last line that gives a verdict decides.
    pub(super) fn of(reply: &str) -> Self {
        let verdicts = reply.lines().filter_map(|line| after(line, "verdict"));
        verdicts.reduce(|_, later| later).map_or(Self::Unclear, |verdict| {
            let words = upper(verdict);
            let negative = words.matches("NOT SUCCESS").count();
            let positive = words.matches("SUCCESS").count() - negative;
            match (positive, negative) {
                (1.., 0) => Self::Success,
                (0, 1..) => Self::NotSuccess,
                _ => Self::Unclear,
            }
        })
    }
}

/// `Blocked: YES`, on the last line that says so; both words in one line say nothing.
pub(super) fn blocked(reply: &str) -> bool {
    let lines = reply.lines().filter_map(|line| after(line, "blocked"));
    lines.reduce(|_, later| later).is_some_and(|line| yes(line) == Some(true))
}

/// The step, counted from 0, that a `Step: 3` line names.
pub(super) fn blocking_step(reply: &str) -> Option<usize> {
    let line = reply.lines().filter_map(|line| after(line, "step")).reduce(|_, later| later)?;
    upper(line).split(' ').next()?.parse::<usize>().ok()?.checked_sub(1)
}

/// YES on a line of its own, or as the last word that is YES or NO.
pub(super) fn relevant(reply: &str) -> bool {
    reply.lines().rev().find_map(yes).unwrap_or(false)
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
            ("All shown.\nVerdict: SUCCESS", Reading::Success),
            ("**Verdict:** success.", Reading::Success),
            ("Verdict: NOT SUCCESS", Reading::NotSuccess),
            ("Verdict: not  success", Reading::NotSuccess),
            ("Verdict: SUCCESS | NOT SUCCESS", Reading::Unclear),
            ("Verdict: NOT SUCCESS\nOn reflection.\nVerdict: SUCCESS", Reading::Success),
            ("It is a success", Reading::Unclear),
            ("", Reading::Unclear),
            ("Verdict:", Reading::Unclear),
            ("My verdict: SUCCESS", Reading::Unclear),
        ] {
            assert_eq!(Reading::of(reply), wanted, "{reply:?}");
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
    fn blocked_and_relevant_want_a_plain_yes() {
        assert!(blocked("A captcha.\nBlocked: YES"));
        assert!(!blocked("Blocked: NO"));
        assert!(!blocked("Blocked: YES | NO"));
        assert!(!blocked("YES"));
        assert!(relevant("It shows the price.\nYES"));
        assert!(!relevant("NO"));
        assert!(!relevant("Yes and no"));
        assert!(!relevant(""));
    }
}
