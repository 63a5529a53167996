//! Page texts and model output on a terminal: hostile, so their control characters are shown, not sent.

use net::escape::escape_terminal;

/// On one line and no longer than `width`.
pub(super) fn line(text: &str, width: usize) -> String {
    let words = escape_terminal(&text.replace(['\n', '\t'], " "));
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
    let lines: Vec<String> = escape_terminal(text).lines().map(|line| format!("{margin}{line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_characters() {
        assert_eq!(line("価格価格", 3), "価格…");
        assert_eq!(line("a\nb", 9), "a b");
    }
}
