//! Replaces lone surrogates in JSON by U+FFFD. Chromium escapes a lone surrogate of page text as `\ud83c`, which no Rust
//! string can hold and strict JSON parsers reject; without the replacement the whole reply would be lost.

const REPLACEMENT: &[u8] = b"\\ufffd";

/// Returns the text with lone surrogate escapes replaced, or `None` if there are none.
pub(crate) fn replace_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut position = 0;
    while let Some(offset) = memchr::memchr(b'\\', &json[position..]) {
        let escape = position + offset;
        match surrogate(json, escape) {
            Some(Half::High) if matches!(surrogate(json, escape + 6), Some(Half::Low)) => {
                position = escape + 12;
            }
            Some(_) => {
                let out = out.get_or_insert_with(|| Vec::with_capacity(json.len()));
                out.extend_from_slice(&json[copied..escape]);
                out.extend_from_slice(REPLACEMENT);
                position = escape + 6;
                copied = position;
            }
            // Skip the escaped character too: in `\\ud800` the backslash itself is escaped.
            None => position = (escape + 2).min(json.len()),
        }
    }
    let mut out = out?;
    out.extend_from_slice(&json[copied..]);
    Some(out)
}

enum Half {
    High,
    Low,
}

/// Parses the escape at `position`, if it is half of a surrogate pair.
fn surrogate(json: &[u8], position: usize) -> Option<Half> {
    let escape = json.get(position..position + 6)?;
    if &escape[..2] != b"\\u" {
        return None;
    }
    let digits = std::str::from_utf8(&escape[2..]).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cleaned(text: &str) -> String {
        replace_lone_surrogates(text.as_bytes()).map_or(text.to_owned(), |v| String::from_utf8(v).unwrap())
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        let cases = [
            (r#""a\ud83cb""#, r#""a\ufffdb""#),
            (r#""\udc00""#, r#""\ufffd""#),
            (r#""\ud83c\udf89""#, r#""\ud83c\udf89""#),
            (r#""\ud83c\ud83c\udf89""#, r#""\ufffd\ud83c\udf89""#),
            (r#""\\ud83c""#, r#""\\ud83c""#),
            (r#""\\\ud83c""#, r#""\\\ufffd""#),
            (r#""\u00e9\n""#, r#""\u00e9\n""#),
            (r#""\ud83c"#, r#""\ufffd"#),
            (r"\", r"\"),
        ];
        for (given, expected) in cases {
            assert_eq!(cleaned(given), expected, "{given}");
        }
    }

    proptest! {
        #[test]
        fn escaped_utf16_becomes_valid_json(units in proptest::collection::vec(any::<u16>(), 0..40)) {
            let escaped: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let text: String = serde_json::from_str(&cleaned(&format!("\"{}\"", escaped.concat()))).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
        }
    }
}
