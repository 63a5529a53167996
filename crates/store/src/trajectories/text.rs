//! Page texts and model output on a terminal: hostile, so their control characters are shown, not sent.

/// Something that a terminal would obey rather than show: a control character, or a mark that reorders the text around
/// it.
pub fn is_unruly(letter: char) -> bool {
    letter.is_control() || is_bidirectional(letter) || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Keeps line feeds and tabs; anything else that a terminal would obey is written out.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            letter if is_unruly(letter) => out.extend(letter.escape_unicode()),
            letter => out.push(letter),
        }
    }
    out
}

/// Marks that reorder the text around them.
const fn is_bidirectional(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// On one line and no longer than `width`.
pub(super) fn line(text: &str, width: usize) -> String {
    let words = harmless(&text.replace(['\n', '\t'], " "));
    if words.chars().count() <= width {
        return words;
    }
    let mut cut: String = words.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Every line moved right by `by`.
pub(super) fn indented(text: &str, by: usize) -> String {
    let margin = " ".repeat(by);
    let lines: Vec<String> = harmless(text).lines().map(|line| format!("{margin}{line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\u{1b}[31mb\r\n\tc"), "a\\u{1b}[31mb\\u{d}\n\tc");
        assert_eq!(harmless("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(harmless("価格 é 🛒"), "価格 é 🛒");
    }

    #[test]
    fn lines_are_cut_by_characters() {
        assert_eq!(line("価格価格", 3), "価格…");
        assert_eq!(line("a\nb", 9), "a b");
    }
}
