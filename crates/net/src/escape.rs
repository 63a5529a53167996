//! Escaping of untrusted text (page contents, model output, client input) before it reaches a terminal or a log.

/// Returns whether a terminal would act on this character instead of showing it: a control character, a line or
/// paragraph separator, or a mark that reorders the text around it.
pub fn is_terminal_control(character: char) -> bool {
    character.is_control() || is_bidi_control(character) || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Returns whether this is a Unicode bidirectional formatting character, which reorders the text around it.
pub const fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces everything that a terminal would act on by its `\u{…}` escape. Line feeds and tabs stay.
pub fn escape_terminal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => escaped.push(character),
            character if is_terminal_control(character) => escaped.extend(character.escape_unicode()),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_terminal("a\u{1b}[31mb\r\n\tc"), "a\\u{1b}[31mb\\u{d}\n\tc");
        assert_eq!(escape_terminal("価格 é 🛒"), "価格 é 🛒");
    }

    #[test]
    fn every_bidi_control_is_escaped() {
        for character in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'] {
            assert!(escape_terminal(&format!("x{character}y")).starts_with("x\\u{"), "{character:?}");
        }
    }
}
