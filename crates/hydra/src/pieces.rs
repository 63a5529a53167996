//! Splits interpolated text into literals and `${…}` expressions, and a resolver call into name and arguments.

use crate::interpolate::InterpolationError;

pub(crate) enum Piece<'a> {
    Literal(String),
    /// The text between `${` and its `}`.
    Expression(&'a str),
}

pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, InterpolationError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(index) = rest.find("${") {
        let before = &rest[..index];
        let plain = before.trim_end_matches('\\');
        let backslashes = before.len() - plain.len();
        literal.push_str(plain);
        literal.extend(std::iter::repeat_n('\\', backslashes / 2));
        if backslashes % 2 == 1 {
            literal.push_str("${");
            rest = &rest[index + 2..];
            continue;
        }
        let inner = &rest[index + 2..];
        let end =
            closing_brace(inner).ok_or_else(|| InterpolationError::new("`${` without a closing `}`"))?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Expression(&inner[..end]));
        rest = &inner[end + 1..];
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// Returns the end of the expression, taking quotes and inner braces into account.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, character) in outside_quotes(text) {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(index),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the characters outside quotes. An unclosed quote extends to the end.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    text.char_indices().filter(move |(_, character)| match quote {
        Some(open) => {
            if *character == open {
                quote = None;
            }
            false
        }
        None if matches!(character, '\'' | '"') => {
            quote = Some(*character);
            false
        }
        None => true,
    })
}

/// Splits `oc.env:HOME` into `oc.env` and `HOME`; returns `None` for a key.
pub(crate) fn split_resolver(expression: &str) -> Option<(&str, &str)> {
    let (name, arguments) = expression.split_once(':')?;
    let name = name.trim();
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    is_name.then_some((name, arguments))
}

pub(crate) fn split_arguments(text: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    for (index, character) in outside_quotes(text) {
        match character {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    arguments.push(text[start..].trim());
    arguments
}
