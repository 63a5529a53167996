//! Text from outside in error messages.

/// The longest quotation, in characters.
const MAX_CHARS: usize = 80;

/// Shortens a text from outside, so that an error message stays readable.
pub fn cut(text: &str) -> String {
    if text.chars().nth(MAX_CHARS).is_none() {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn only_long_text_is_cut() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(cut(&"é".repeat(81)), "é".repeat(80) + "…");
    }
}
