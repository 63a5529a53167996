//! Formats untrusted text (page content, model output) for a terminal; control characters are escaped.

use net::escape::escape_terminal;

/// Returns the text, escaped, on a single line of at most `width` characters.
pub(super) fn single_line(text: &str, width: usize) -> String {
    let escaped = escape_terminal(&text.replace(['\n', '\t'], " "));
    if escaped.chars().count() <= width {
        return escaped;
    }
    let mut truncated: String = escaped.chars().take(width.saturating_sub(1)).collect();
    truncated.push('…');
    truncated
}

/// Escapes control characters and indents every line by `columns`.
pub(super) fn indent(text: &str, columns: usize) -> String {
    let margin = " ".repeat(columns);
    let lines: Vec<String> = escape_terminal(text).lines().map(|line| format!("{margin}{line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_truncated_by_characters() {
        assert_eq!(single_line("価格価格", 3), "価格…");
        assert_eq!(single_line("a\nb", 9), "a b");
    }
}
