//! Separates the think block of a model's reply from its answer, in one pass over the text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A reply separated into its thinking and its answer.
pub(crate) struct SplitReply {
    pub(crate) thinking: String,
    pub(crate) answer: String,
    /// The reply ended inside its think block.
    pub(crate) is_unfinished: bool,
}

/// Splits a reply. The opening tag may be missing because some chat templates write it themselves: then everything
/// before the first closing tag is thinking.
pub(crate) fn split_thinking(reply: &str) -> SplitReply {
    let mut thinking = String::new();
    let mut answer = String::new();
    let mut is_inside = false;
    let mut was_closed = false;
    let mut start = 0;
    for bracket in memchr::memchr_iter(b'<', reply.as_bytes()) {
        if bracket < start {
            continue;
        }
        let rest = &reply[bracket..];
        if rest.starts_with(OPEN) {
            if !is_inside {
                answer.push_str(&reply[start..bracket]);
                start = bracket + OPEN.len();
            }
            is_inside = true;
        } else if rest.starts_with(CLOSE) {
            let before = &reply[start..bracket];
            if is_inside {
                append_paragraph(&mut thinking, before);
            } else if was_closed {
                answer.push_str(before);
            } else {
                append_paragraph(&mut thinking, &std::mem::take(&mut answer));
                append_paragraph(&mut thinking, before);
            }
            (is_inside, was_closed) = (false, true);
            start = bracket + CLOSE.len();
        }
    }
    if is_inside {
        append_paragraph(&mut thinking, &reply[start..]);
    } else {
        answer.push_str(&reply[start..]);
    }
    SplitReply { thinking, answer: answer.trim().to_owned(), is_unfinished: is_inside }
}

fn append_paragraph(text: &mut String, more: &str) {
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
    fn thinking_is_separated_from_the_answer() {
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
        for (reply, thinking, answer, is_unfinished) in cases {
            let got = split_thinking(reply);
            assert_eq!(
                (got.thinking.as_str(), got.answer.as_str(), got.is_unfinished),
                (thinking, answer, is_unfinished),
                "{reply}"
            );
        }
    }
}
