//! Parses calls in Python's syntax with literal arguments, as in `click('12', button="left")`. Nothing is evaluated.

/// Calls in one text, and nesting of lists, that are still read.
const MAX_CALLS: usize = 16;
const MAX_DEPTH: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Text(String),
    Number(f64),
    Bool(bool),
    None,
    List(Vec<Literal>),
}

/// One call: the name, and the arguments in order with their names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<(Option<String>, Literal)>,
}

impl Call {
    /// Returns the argument at a position, or by its name.
    pub(super) fn argument(&self, position: usize, name: &str) -> Option<&Literal> {
        let by_position = self.arguments.iter().take_while(|(name, _)| name.is_none()).nth(position);
        let by_name = || self.arguments.iter().find(|(given, _)| given.as_deref() == Some(name));
        by_position.or_else(by_name).map(|(_, value)| value)
    }
}

/// Parses one or more calls, separated by line breaks or semicolons. Comments are skipped.
pub(super) fn parse_calls(text: &str) -> Result<Vec<Call>, String> {
    let mut parser = Parser { rest: text };
    let mut calls = Vec::new();
    loop {
        parser.skip_separators();
        if parser.rest.is_empty() {
            break;
        }
        if calls.len() == MAX_CALLS {
            return Err(format!("more than {MAX_CALLS} actions at once"));
        }
        calls.push(parser.call()?);
    }
    if calls.is_empty() {
        return Err("the action is empty; expected a call such as click('12')".to_owned());
    }
    Ok(calls)
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip_separators(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn take(&mut self, expected: char) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn name(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name
    }

    fn unexpected(&self, expected: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        if found.is_empty() {
            format!("expected {expected} at the end")
        } else {
            format!("expected {expected} before {found:?}")
        }
    }

    fn call(&mut self) -> Result<Call, String> {
        let name = self.name();
        if name.is_empty() || !self.take('(') {
            return Err(self.unexpected("a call such as click('12')"));
        }
        let mut arguments = Vec::new();
        loop {
            if self.take(')') {
                return Ok(Call { name: name.to_owned(), arguments });
            }
            if !arguments.is_empty() && !self.take(',') {
                return Err(self.unexpected("',' or ')'"));
            }
            if self.take(')') {
                return Ok(Call { name: name.to_owned(), arguments });
            }
            arguments.push(self.argument()?);
        }
    }

    fn argument(&mut self) -> Result<(Option<String>, Literal), String> {
        self.skip_spaces();
        let before = self.rest;
        let name = self.name();
        if !name.is_empty() && self.take('=') {
            return Ok((Some(name.to_owned()), self.literal(0)?));
        }
        self.rest = before;
        Ok((None, self.literal(0)?))
    }

    fn literal(&mut self, depth: usize) -> Result<Literal, String> {
        self.skip_spaces();
        match self.rest.chars().next() {
            Some('\'' | '"') => self.text().map(Literal::Text),
            Some('[' | '(') if depth < MAX_DEPTH => self.list(depth),
            Some(c) if c.is_ascii_digit() || "+-.".contains(c) => self.number(),
            _ => self.constant(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Literal, String> {
        let close = if self.take('[') { ']' } else { ')' };
        if close == ')' {
            self.take('(');
        }
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() && !self.take(',') {
                return Err(self.unexpected("',' or the end of the list"));
            }
            if self.take(close) {
                break;
            }
            items.push(self.literal(depth + 1)?);
        }
        Ok(Literal::List(items))
    }

    fn number(&mut self) -> Result<Literal, String> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        let parsed = number.parse().ok().filter(|number: &f64| number.is_finite());
        let parsed = parsed.ok_or_else(|| self.unexpected("a number"))?;
        self.rest = rest;
        Ok(Literal::Number(parsed))
    }

    fn constant(&mut self) -> Result<Literal, String> {
        let before = self.rest;
        match self.name() {
            "True" | "true" => Ok(Literal::Bool(true)),
            "False" | "false" => Ok(Literal::Bool(false)),
            "None" | "null" => Ok(Literal::None),
            _ => {
                self.rest = before;
                Err(self.unexpected("a text in quotes, a number, True, False or None"))
            }
        }
    }

    fn text(&mut self) -> Result<String, String> {
        let quote = ["'''", "\"\"\"", "'", "\""].into_iter().find(|quote| self.rest.starts_with(quote));
        let quote = quote.ok_or_else(|| self.unexpected("a quote"))?;
        let mut text = String::new();
        let mut rest = &self.rest[quote.len()..];
        loop {
            if let Some(after) = rest.strip_prefix(quote) {
                self.rest = after;
                return Ok(text);
            }
            let mut chars = rest.chars();
            match chars.next() {
                Some('\\') => {
                    rest = unescape(chars.as_str(), &mut text);
                }
                Some(c) => {
                    text.push(c);
                    rest = chars.as_str();
                }
                None => return Err(format!("the text is not closed with {quote}")),
            }
        }
    }
}

/// Appends the character of an escape sequence, whose backslash is already read, and returns the rest.
fn unescape<'a>(rest: &'a str, text: &mut String) -> &'a str {
    let mut chars = rest.chars();
    let digits = match chars.next() {
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        Some('\n') | None => return chars.as_str(),
        Some(c) => {
            match c {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '\\' | '\'' | '"' => text.push(c),
                other => text.extend(['\\', other]),
            }
            return chars.as_str();
        }
    };
    let code = chars.as_str().get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok());
    if let Some(c) = code.and_then(char::from_u32) {
        text.push(c);
        return &chars.as_str()[digits..];
    }
    text.push('\\');
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Literal {
        Literal::Text(text.to_owned())
    }

    #[test]
    fn calls_with_literals_are_parsed() {
        let calls =
            parse_calls("# first\nfill('3', \"it's\\n\\u00e9\", enable=True); scroll(-1.5, 200,)\nnoop()")
                .unwrap();
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[0].argument(1, "value"), Some(&text("it's\né")));
        assert_eq!(calls[0].argument(2, "enable"), Some(&Literal::Bool(true)));
        assert_eq!(calls[1].argument(0, "x"), Some(&Literal::Number(-1.5)));
        assert_eq!(calls[2].arguments, []);
        let list = parse_calls("select_option('5', ['a', 'b'])").unwrap();
        assert_eq!(list[0].argument(1, "options"), Some(&Literal::List(vec![text("a"), text("b")])));
        let long = parse_calls("f('''a 'b' c''')").unwrap();
        assert_eq!(long[0].argument(0, ""), Some(&text("a 'b' c")));
    }

    #[test]
    fn malformed_calls_are_refused() {
        for wrong in [
            "",
            "# only a comment",
            "click",
            "click(",
            "click('1'",
            "click('1)",
            "click(1 2)",
            "click(x)",
            "click(open('/etc/passwd'))",
            "1+1",
            "click('1').x",
            "f([1",
            "f([[[[[[[[1]]]]]]]])",
            "f(1e999)",
        ] {
            assert!(parse_calls(wrong).is_err(), "{wrong:?} gives {:?}", parse_calls(wrong));
        }
        assert!(parse_calls(&"noop()\n".repeat(17)).is_err());
    }
}
