//! Parses the values of command line overrides in Hydra's grammar: quoted and plain text, lists, dicts and interpolations.
//! Sweeps and functions are refused with a message. Characters that Hydra rejects without giving them a meaning (`~`, `#`,
//! non-ASCII letters) are ordinary text here.

use crate::node::{Node, NodeMap, Origin, Value, python_float};

const MAX_DEPTH: usize = 32;

/// Parses everything after the `=` of an override.
pub(crate) fn parse_value(text: &str, origin: &Origin) -> Result<Node, String> {
    let mut reader = Reader { rest: text, origin };
    reader.skip_blanks();
    if reader.rest.is_empty() {
        return Ok(Node::new(Value::Text(String::new()), origin.clone()));
    }
    let node = reader.element(0)?;
    reader.skip_blanks();
    match reader.rest.chars().next() {
        None => Ok(node),
        Some(',') => Err("several values separated by commas are a sweep, which is not supported; \
                          write [a,b] for a list or quote the value for text with a comma"
            .into()),
        Some(other) => Err(format!("unexpected {other:?}; quote the value to use it as text")),
    }
}

struct Reader<'a> {
    rest: &'a str,
    origin: &'a Origin,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn node(&self, value: Value) -> Node {
        Node::new(value, self.origin.clone())
    }

    fn element(&mut self, depth: usize) -> Result<Node, String> {
        if depth > MAX_DEPTH {
            return Err("nested too deeply".into());
        }
        match self.rest.chars().next() {
            Some('[') => self.list(depth),
            Some('{') => self.dict(depth),
            Some(quote @ ('\'' | '"')) => {
                let text = self.quoted(quote)?;
                Ok(self.node(Value::Text(text)))
            }
            _ => {
                let value = self.plain(&[])?;
                Ok(self.node(value))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Node, String> {
        self.take('[');
        let mut list = Vec::new();
        self.skip_blanks();
        if self.take(']') {
            return Ok(self.node(Value::List(list)));
        }
        loop {
            self.skip_blanks();
            list.push(self.element(depth + 1)?);
            self.skip_blanks();
            if self.take(']') {
                return Ok(self.node(Value::List(list)));
            }
            if !self.take(',') {
                return Err(self.unclosed("list", ']'));
            }
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Node, String> {
        self.take('{');
        let mut map = NodeMap::new();
        self.skip_blanks();
        if self.take('}') {
            return Ok(self.node(Value::Map(map)));
        }
        loop {
            self.skip_blanks();
            let key = self.dict_key()?;
            self.skip_blanks();
            if !self.take(':') {
                return Err(format!("the dict key {key:?} needs a `:` and a value"));
            }
            self.skip_blanks();
            let node = self.element(depth + 1)?;
            map.insert(key, node);
            self.skip_blanks();
            if self.take('}') {
                return Ok(self.node(Value::Map(map)));
            }
            if !self.take(',') {
                return Err(self.unclosed("dict", '}'));
            }
        }
    }

    fn unclosed(&self, kind: &str, end: char) -> String {
        match self.rest.chars().next() {
            None => format!("the {kind} is not closed with {end:?}"),
            Some(other) => {
                format!("unexpected {other:?} in the {kind}; expected a comma or {end:?}")
            }
        }
    }

    fn dict_key(&mut self) -> Result<String, String> {
        if let Some(quote @ ('\'' | '"')) = self.rest.chars().next() {
            return self.quoted(quote);
        }
        match self.plain(&[':'])? {
            Value::Text(text) => Ok(text),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Int(number) => Ok(number.to_string()),
            Value::Float(number) => Ok(python_float(number)),
            _ => Ok("null".into()),
        }
    }

    /// Parses quoted text. As in Hydra, a backslash is an escape only directly before the quote.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        let mut backslashes = 0;
        let body = self.rest.get(1..).unwrap_or_default();
        for (index, character) in body.char_indices() {
            if character == '\\' {
                backslashes += 1;
                continue;
            }
            let is_quote = character == quote;
            let kept = if is_quote { backslashes / 2 } else { backslashes };
            text.extend(std::iter::repeat_n('\\', kept));
            if is_quote && backslashes % 2 == 0 {
                self.rest = &body[index + 1..];
                return Ok(text);
            }
            backslashes = 0;
            text.push(character);
        }
        Err(format!("the quote {quote} is not closed"))
    }

    /// Parses unquoted text up to a special character.
    fn plain(&mut self, stops: &[char]) -> Result<Value, String> {
        let mut text = String::new();
        // Trailing blanks are removed unless they are escaped.
        let mut kept_length = 0;
        let mut has_escape = false;
        while let Some(character) = self.rest.chars().next() {
            let after = &self.rest[character.len_utf8()..];
            if stops.contains(&character) || matches!(character, ',' | ']' | '}') {
                break;
            }
            if let Some(length) = interpolation_length(self.rest) {
                text.push_str(&self.rest[..length]);
                self.rest = &self.rest[length..];
                kept_length = text.len();
                continue;
            }
            match character {
                '\\' if after.starts_with(ESCAPABLE) => {
                    text.extend(after.chars().next());
                    self.rest = &after[1..];
                    kept_length = text.len();
                    has_escape = true;
                    continue;
                }
                '(' => return Err(function_error(&text)),
                '\'' | '"' | '[' | '{' | ')' | '=' => {
                    return Err(format!("{character:?} inside unquoted text; quote the value: key='…'"));
                }
                ' ' | '\t' => {}
                control if control.is_control() => {
                    return Err(format!("the control character {control:?} needs quotes around the value"));
                }
                _ => kept_length = text.len() + character.len_utf8(),
            }
            text.push(character);
            self.rest = after;
        }
        text.truncate(kept_length);
        if text.is_empty() {
            return Err("a value is missing".into());
        }
        if has_escape { Ok(Value::Text(text)) } else { parse_word(text) }
    }
}

const ESCAPABLE: [char; 11] = ['\\', '(', ')', '[', ']', '{', '}', ':', '=', ',', ' '];

/// Returns the length of an interpolation at the start of the text: `${` up to the first `}`.
fn interpolation_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("${")?;
    inner.find('}').filter(|length| *length > 0).map(|length| length + 3)
}

fn function_error(name: &str) -> String {
    format!(
        "{:?} looks like a function call, which is not supported; quote the value to use it as text",
        name.trim()
    )
}

/// Converts unquoted text to null, a bool, a number or text.
pub(crate) fn parse_word(text: String) -> Result<Value, String> {
    if text.eq_ignore_ascii_case("null") {
        return Ok(Value::Null);
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Ok(Value::Bool(text.eq_ignore_ascii_case("true")));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    if is_unsigned_int(unsigned) {
        let number = text.replace('_', "").parse();
        return number.map(Value::Int).map_err(|_| format!("the number {text} does not fit in 64 bits"));
    }
    if unsigned.eq_ignore_ascii_case("inf")
        || unsigned.eq_ignore_ascii_case("nan")
        || is_unsigned_float(unsigned)
    {
        return Ok(text.replace('_', "").parse().map_or(Value::Text(text), Value::Float));
    }
    Ok(Value::Text(text))
}

/// Returns whether the text has only digits, with single underscores between them, such as `1_000`.
fn is_digits(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('_')
        && !text.ends_with('_')
        && !text.contains("__")
        && text.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

fn is_unsigned_int(text: &str) -> bool {
    is_digits(text) && (text == "0" || !text.starts_with('0'))
}

fn is_unsigned_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(index) => (&text[..index], Some(&text[index + 1..])),
        None => (text, None),
    };
    if exponent.is_some_and(|exponent| !is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))) {
        return false;
    }
    match mantissa.split_once('.') {
        None => exponent.is_some() && is_unsigned_int(mantissa),
        Some((whole, "")) => is_unsigned_int(whole),
        Some((whole, fraction)) => (whole.is_empty() || is_unsigned_int(whole)) && is_digits(fraction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<serde_json::Value, String> {
        parse_value(text, &Origin::Default).map(|node| node.to_json())
    }

    #[test]
    fn values_parse_as_in_hydra() {
        let cases = [
            ("", json!("")),
            (" 3 ", json!(3)),
            ("1_000", json!(1000)),
            ("010", json!("010")),
            ("1e3", json!(1000.0)),
            ("1.", json!(1.0)),
            ("TrUe", json!(true)),
            ("yes", json!("yes")),
            ("NULL", json!(null)),
            ("a b", json!("a b")),
            ("http://h:80/v1?x", json!("http://h:80/v1?x")),
            ("a\\,b", json!("a,b")),
            ("a\\=b", json!("a=b")),
            ("C:\\x", json!("C:\\x")),
            ("x\\ ", json!("x ")),
            ("'q\\'s'", json!("q's")),
            ("'a\\\\'", json!("a\\")),
            ("'a\\\\b'", json!("a\\\\b")),
            ("\"a'b\"", json!("a'b")),
            ("[1, x y ,'z']", json!([1, "x y", "z"])),
            ("{a: 1, b:[2,{c:d:e}]}", json!({"a": 1, "b": [2, {"c": "d:e"}]})),
            ("{1:2}", json!({"1": 2})),
            ("x${a.b}y", json!("x${a.b}y")),
            ("\\${a}", json!("\\${a}")),
            ("~/data/été#1", json!("~/data/été#1")),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text), Ok(wanted), "{text:?}");
        }
    }

    #[test]
    fn refused_values_come_with_advice() {
        let cases = [
            ("x,y", "sweep"),
            ("a=b", "quote the value"),
            ("choice(1,2)", "function"),
            ("[1", "not closed"),
            ("[1,]", "missing"),
            ("'a", "not closed"),
            ("it's", "quote"),
            ("x\ny", "quotes"),
            ("'a'b", "unexpected"),
            ("{a}", "needs a `:`"),
        ];
        for (text, wanted) in cases {
            let got = read(text).unwrap_err();
            assert!(got.contains(wanted), "{text:?}: {got}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_or_fails(text in ".{0,60}") {
            drop(read(&text));
        }

        #[test]
        fn quoted_text_is_unchanged(text in "[^'\\\\$]{0,30}") {
            proptest::prop_assert_eq!(read(&format!("'{text}'")), Ok(json!(text)));
        }
    }
}
