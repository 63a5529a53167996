//! JSON as models write it: trailing commas, single quotes, bare keys, Python literals, raw line breaks, a brace short
//! at the end. Strict JSON reads as itself. Every byte looked at is counted, and the count is bounded.

use serde_json::{Map, Number, Value};

const MAX_DEPTH: usize = 32;

/// Counts the bytes that parsing a reply has looked at, and calls a halt.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) steps: usize,
    limit: usize,
}

impl Work {
    /// Enough for any honest text of this length, and linear in it.
    pub(crate) fn for_length(length: usize) -> Self {
        Self { steps: 0, limit: 16 * length + 4096 }
    }

    pub(crate) fn spend(&mut self, steps: usize) {
        self.steps += steps;
    }

    pub(crate) fn exhausted(&self) -> bool {
        self.steps > self.limit
    }
}

/// Reads one value at the start of `text`; gives it and the bytes it took. `cut` says that the text may have been cut off
/// at its end, so that a number or word standing there is not to be trusted.
pub(crate) fn read(text: &str, cut: bool, work: &mut Work) -> Option<(Value, usize)> {
    let mut reader = Reader { text, at: 0, cut, work };
    let value = reader.value(0)?;
    Some((value, reader.at))
}

struct Reader<'a, 'w> {
    text: &'a str,
    at: usize,
    cut: bool,
    work: &'w mut Work,
}

impl Reader<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.at += bytes;
        self.work.spend(bytes);
        (!self.work.exhausted()).then_some(())
    }

    fn skip_blanks(&mut self) -> Option<()> {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.advance(1)?;
        }
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_blanks()?;
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(b']', depth),
            b'(' => self.list(b')', depth),
            quote @ (b'"' | b'\'') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.advance(1)?;
        let mut map = Map::new();
        loop {
            self.skip_separators()?;
            match self.peek() {
                // The braces are short at the end; what stands here is complete.
                None => return Some(Value::Object(map)),
                Some(b'}') => {
                    self.advance(1)?;
                    return Some(Value::Object(map));
                }
                Some(quote @ (b'"' | b'\'')) => {
                    let key = self.string(quote)?;
                    self.entry(key, &mut map, depth)?;
                }
                Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let key = self.bare()?.to_owned();
                    self.entry(key, &mut map, depth)?;
                }
                Some(_) => return None,
            }
        }
    }

    fn entry(&mut self, key: String, map: &mut Map<String, Value>, depth: usize) -> Option<()> {
        self.skip_blanks()?;
        if self.peek()? != b':' {
            return None;
        }
        self.advance(1)?;
        let value = self.value(depth + 1)?;
        map.insert(key, value);
        Some(())
    }

    fn list(&mut self, end: u8, depth: usize) -> Option<Value> {
        self.advance(1)?;
        let mut list = Vec::new();
        loop {
            self.skip_separators()?;
            match self.peek() {
                None => return Some(Value::Array(list)),
                Some(byte) if byte == end => {
                    self.advance(1)?;
                    return Some(Value::Array(list));
                }
                Some(b'}' | b']' | b')' | b':') => return None,
                Some(_) => list.push(self.value(depth + 1)?),
            }
        }
    }

    fn skip_separators(&mut self) -> Option<()> {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',') {
            self.advance(1)?;
        }
        Some(())
    }

    /// A quote closes the string only where something may follow it; others are taken as forgotten escapes.
    fn string(&mut self, quote: u8) -> Option<String> {
        self.advance(1)?;
        let mut out = String::new();
        loop {
            let start = self.at;
            let rest = self.text.as_bytes().get(start..)?;
            let Some(plain) = memchr::memchr2(quote, b'\\', rest) else {
                self.work.spend(rest.len());
                return None;
            };
            self.advance(plain)?;
            out.push_str(self.text.get(start..self.at)?);
            if self.peek()? == b'\\' {
                self.escape(&mut out)?;
                continue;
            }
            self.advance(1)?;
            if self.may_close()? {
                return Some(out);
            }
            out.push(quote as char);
        }
    }

    fn may_close(&mut self) -> Option<bool> {
        let after = self.text.as_bytes().get(self.at..)?;
        let blanks = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.work.spend(blanks + 1);
        Some(after.get(blanks).is_none_or(|byte| matches!(byte, b',' | b':' | b'}' | b']' | b')')))
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        self.advance(1)?;
        let character = self.text.get(self.at..)?.chars().next()?;
        self.advance(character.len_utf8())?;
        match character {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => out.push(self.unicode_escape()?),
            other => out.push(other),
        }
        Some(())
    }

    fn unicode_escape(&mut self) -> Option<char> {
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first) && self.text.get(self.at..)?.starts_with("\\u") {
            let mark = self.at;
            self.advance(2)?;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            self.at = mark;
        }
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.advance(4)?;
        Some(number)
    }

    fn bare(&mut self) -> Option<&str> {
        let start = self.at;
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.');
        let length = self.text.as_bytes().get(start..)?.iter().take_while(|byte| is_word(byte)).count();
        self.advance(length)?;
        self.text.get(start..self.at).filter(|word| !word.is_empty())
    }

    fn word(&mut self) -> Option<Value> {
        let word = self.bare()?.to_owned();
        if self.cut && self.at == self.text.len() {
            return None;
        }
        match word.as_str() {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            _ => match word.parse::<i64>() {
                Ok(number) => Some(Value::from(number)),
                Err(_) => word.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn get(text: &str) -> Option<Value> {
        read(text, true, &mut Work::for_length(text.len())).map(|(value, _)| value)
    }

    #[test]
    fn what_models_get_wrong_is_understood() {
        let cases = [
            (r#"{"a": 1,}"#, json!({"a": 1})),
            ("{'a': 'it''s', 'b': [1, 2,],}", json!({"a": "it''s", "b": [1, 2]})),
            ("{a: True, b: None}", json!({"a": true, "b": null})),
            (r#"{"t": "say "hi" now"}"#, json!({"t": "say \"hi\" now"})),
            ("{\"t\": \"two\nlines\"}", json!({"t": "two\nlines"})),
            (r#"{"c": (5, 6)}"#, json!({"c": [5, 6]})),
            (r#"{"a": {"b": [1, 2]"#, json!({"a": {"b": [1, 2]}})),
            (r#"{"e": "\ud83d\ude00 \ud83d x"}"#, json!({"e": "😀 \u{fffd} x"})),
            (r#"{"n": -1.5e2}"#, json!({"n": -150.0})),
        ];
        for (text, wanted) in cases {
            assert_eq!(get(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_may_have_been_cut_off_is_not_trusted() {
        for text in [r#"{"x": 50"#, r#"{"t": "half a sen"#, r#"{"t""#, r#"{"t":"#, "{a", "[1, 2"] {
            assert_eq!(get(text), None, "{text}");
        }
        let (value, _) = read(r#"{"x": 50"#, false, &mut Work::for_length(8)).unwrap();
        assert_eq!(value, json!({"x": 50}));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e6_f64..1e6).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn strict_json_reads_as_itself(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let got = read(&text, false, &mut Work::for_length(text.len()));
            prop_assert_eq!(got, Some((value, text.len())));
        }
    }
}
