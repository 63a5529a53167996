//! Splits a reply into what the model thought and what it answered. One pass over the text.

pub(super) const OPEN: &str = "<think>";
pub(super) const CLOSE: &str = "</think>";

pub(crate) struct Split {
    pub(crate) thinking: String,
    pub(crate) answer: String,
    /// The reply ended inside its think block.
    pub(crate) unfinished: bool,
}

/// The opening tag may be missing (the chat template has already written it): then all before the first closing tag
/// is thought.
pub(crate) fn split(reply: &str) -> Split {
    let mut thinking = String::new();
    let mut answer = String::new();
    let mut inside = false;
    let mut closed_once = false;
    let mut start = 0;
    for at in memchr::memchr_iter(b'<', reply.as_bytes()) {
        if at < start {
            continue;
        }
        let rest = &reply[at..];
        if rest.starts_with(OPEN) {
            if !inside {
                answer.push_str(&reply[start..at]);
                start = at + OPEN.len();
            }
            inside = true;
        } else if rest.starts_with(CLOSE) {
            let before = &reply[start..at];
            if inside {
                join(&mut thinking, before);
            } else if closed_once {
                answer.push_str(before);
            } else {
                join(&mut thinking, &std::mem::take(&mut answer));
                join(&mut thinking, before);
            }
            (inside, closed_once) = (false, true);
            start = at + CLOSE.len();
        }
    }
    if inside {
        join(&mut thinking, &reply[start..]);
    } else {
        answer.push_str(&reply[start..]);
    }
    Split { thinking, answer: answer.trim().to_owned(), unfinished: inside }
}

fn join(text: &mut String, more: &str) {
    let more = more.trim();
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_split_off_however_they_are_marked() {
        let cases = [
            ("answer", "", "answer", false),
            ("<think>t</think>answer", "t", "answer", false),
            ("t</think>answer", "t", "answer", false),
            ("  <think>\nt\n</think>\n\nanswer ", "t", "answer", false),
            ("<think>t", "t", "", true),
            ("<think></think>answer", "", "answer", false),
            ("a <think>t</think> b <think>u</think> c", "t\nu", "a  b  c", false),
            ("<think>t</think>a</think>b", "t", "ab", false),
            ("<think>x <think> y</think>a", "x <think> y", "a", false),
            ("a < b", "", "a < b", false),
        ];
        for (reply, thinking, answer, unfinished) in cases {
            let got = split(reply);
            assert_eq!(
                (got.thinking.as_str(), got.answer.as_str(), got.unfinished),
                (thinking, answer, unfinished),
                "{reply}"
            );
        }
    }
}
