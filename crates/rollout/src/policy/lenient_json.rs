//! Parses JSON with the mistakes that models make: trailing commas, single quotes, unquoted keys, Python literals, raw
//! line breaks, missing closing braces at the end. Strict JSON gives the same value as a strict parser. A budget bounds
//! the number of bytes that are read.

use serde_json::{Map, Number, Value};

const MAX_DEPTH: usize = 32;

/// Counts the bytes that were read while parsing a reply, and ends the parsing beyond a limit.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    pub(crate) spent: usize,
    limit: usize,
}

impl WorkBudget {
    /// Creates a budget that is linear in the length of the text and enough for any well-meant reply.
    pub(crate) fn for_length(length: usize) -> Self {
        Self { spent: 0, limit: 16 * length + 4096 }
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.spent += bytes;
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.spent > self.limit
    }
}

/// Parses one value at the start of `text`. Returns the value and its length in bytes. With `may_be_truncated`, a number
/// or literal at the very end of the text is rejected, because part of it may be missing.
pub(crate) fn parse_prefix(
    text: &str,
    may_be_truncated: bool,
    budget: &mut WorkBudget,
) -> Option<(Value, usize)> {
    let mut parser = Parser { text, position: 0, may_be_truncated, budget };
    let value = parser.value(0)?;
    Some((value, parser.position))
}

struct Parser<'a, 'b> {
    text: &'a str,
    position: usize,
    may_be_truncated: bool,
    budget: &'b mut WorkBudget,
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.position += bytes;
        self.budget.spend(bytes);
        (!self.budget.is_exhausted()).then_some(())
    }

    fn skip_whitespace(&mut self) -> Option<()> {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.advance(1)?;
        }
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip_whitespace()?;
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(b']', depth),
            b'(' => self.list(b')', depth),
            quote @ (b'"' | b'\'') => self.string(quote).map(Value::String),
            _ => self.literal(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.advance(1)?;
        let mut map = Map::new();
        loop {
            self.skip_separators()?;
            match self.peek() {
                // Closing braces are missing at the end, but every entry so far is complete.
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
                    let key = self.unquoted_word()?.to_owned();
                    self.entry(key, &mut map, depth)?;
                }
                Some(_) => return None,
            }
        }
    }

    fn entry(&mut self, key: String, map: &mut Map<String, Value>, depth: usize) -> Option<()> {
        self.skip_whitespace()?;
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

    /// Parses a string. A quote closes it only if a separator, a closing bracket or the end of the text follows; any
    /// other quote is taken as part of the string that should have been escaped.
    fn string(&mut self, quote: u8) -> Option<String> {
        self.advance(1)?;
        let mut out = String::new();
        loop {
            let start = self.position;
            let rest = self.text.as_bytes().get(start..)?;
            let Some(length) = memchr::memchr2(quote, b'\\', rest) else {
                self.budget.spend(rest.len());
                return None;
            };
            self.advance(length)?;
            out.push_str(self.text.get(start..self.position)?);
            if self.peek()? == b'\\' {
                self.escape(&mut out)?;
                continue;
            }
            self.advance(1)?;
            if self.check_closing_quote()? {
                return Some(out);
            }
            out.push(quote as char);
        }
    }

    /// Returns whether the quote just read closes the string. Spends budget for the whitespace it skips.
    fn check_closing_quote(&mut self) -> Option<bool> {
        let after = self.text.as_bytes().get(self.position..)?;
        let whitespace = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.budget.spend(whitespace + 1);
        Some(after.get(whitespace).is_none_or(|byte| matches!(byte, b',' | b':' | b'}' | b']' | b')')))
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        self.advance(1)?;
        let character = self.text.get(self.position..)?.chars().next()?;
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
        if (0xd800..0xdc00).contains(&first) && self.text.get(self.position..)?.starts_with("\\u") {
            let after_first = self.position;
            self.advance(2)?;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            self.position = after_first;
        }
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.position..self.position + 4)?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.advance(4)?;
        Some(number)
    }

    fn unquoted_word(&mut self) -> Option<&str> {
        let start = self.position;
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.');
        let length = self.text.as_bytes().get(start..)?.iter().take_while(|byte| is_word(byte)).count();
        self.advance(length)?;
        self.text.get(start..self.position).filter(|word| !word.is_empty())
    }

    fn literal(&mut self) -> Option<Value> {
        let word = self.unquoted_word()?.to_owned();
        if self.may_be_truncated && self.position == self.text.len() {
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

    fn parse_truncated(text: &str) -> Option<Value> {
        parse_prefix(text, true, &mut WorkBudget::for_length(text.len())).map(|(value, _)| value)
    }

    #[test]
    fn common_mistakes_are_accepted() {
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
            assert_eq!(parse_truncated(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn possibly_truncated_value_is_rejected() {
        for text in [r#"{"x": 50"#, r#"{"t": "half a sen"#, r#"{"t""#, r#"{"t":"#, "{a", "[1, 2"] {
            assert_eq!(parse_truncated(text), None, "{text}");
        }
        let (value, _) = parse_prefix(r#"{"x": 50"#, false, &mut WorkBudget::for_length(8)).unwrap();
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
        fn strict_json_is_parsed_unchanged(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let got = parse_prefix(&text, false, &mut WorkBudget::for_length(text.len()));
            prop_assert_eq!(got, Some((value, text.len())));
        }
    }
}
