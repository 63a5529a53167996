//! The types of plain YAML scalars by the rules of PyYAML as OmegaConf configures it, since Hydra files are written for those:
//! `yes` is true, `010` is eight, `1e3` is a float and a date stays text.

use crate::node::Value;

/// Returns the value of an unquoted scalar.
pub(crate) fn resolve(text: &str) -> Result<Value, String> {
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(Value::Null);
    }
    if let Some(flag) = boolean(text) {
        return Ok(Value::Bool(flag));
    }
    let may_be_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if may_be_number && let Some(number) = integer(text) {
        return number.map(Value::Int);
    }
    if may_be_number && let Some(number) = float(text) {
        return Ok(Value::Float(number));
    }
    Ok(Value::Text(text.to_owned()))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn all_bytes(text: &str, accepted: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(|b| b == b'_' || accepted(b))
}

/// Parses an integer. Returns `None` for other text and `Some(Err)` for an integer beyond 64 bits.
fn integer(text: &str) -> Option<Result<i64, String>> {
    let (negative, digits) = split_sign(text);
    let radix_form = |prefix: &str, radix: u32, accepted: fn(u8) -> bool| {
        digits
            .strip_prefix(prefix)
            .filter(|rest| all_bytes(rest, accepted))
            .map(|rest| (rest.to_owned(), radix))
    };
    let (digits, radix) = radix_form("0b", 2, |b| matches!(b, b'0' | b'1'))
        .or_else(|| radix_form("0x", 16, |b| b.is_ascii_hexdigit()))
        .or_else(|| radix_form("0", 8, |b| (b'0'..=b'7').contains(&b)))
        .or_else(|| is_decimal(digits).then(|| (digits.to_owned(), 10)))
        .or_else(|| sexagesimal(digits).map(|seconds| (seconds.to_string(), 10)))?;
    let digits = digits.replace('_', "");
    let magnitude = i128::from_str_radix(&digits, radix).ok();
    let number = magnitude.and_then(|m| i64::try_from(if negative { -m } else { m }).ok());
    Some(number.ok_or_else(|| format!("the number {text} does not fit in 64 bits")))
}

fn is_decimal(digits: &str) -> bool {
    digits == "0"
        || (digits.starts_with(|c: char| matches!(c, '1'..='9')) && all_bytes(digits, |b| b.is_ascii_digit()))
}

/// Parses a base-60 integer of YAML 1.1: `1:30` is ninety.
fn sexagesimal(digits: &str) -> Option<i128> {
    let mut parts = digits.split(':');
    let first = parts.next().filter(|head| is_decimal(head) && *head != "0")?;
    let mut total: i128 = first.replace('_', "").parse().ok()?;
    let mut any = false;
    for part in parts {
        any = true;
        total = total.checked_mul(60)?.checked_add(i128::from(base_sixty_digit(part)?))?;
    }
    any.then_some(total)
}

fn base_sixty_digit(part: &str) -> Option<u32> {
    let is_digit = matches!(part.len(), 1 | 2) && part.bytes().all(|b| b.is_ascii_digit());
    part.parse().ok().filter(|n| is_digit && *n < 60)
}

fn float(text: &str) -> Option<f64> {
    let (negative, rest) = split_sign(text);
    let signed = |number: f64| if negative { -number } else { number };
    match rest {
        ".inf" | ".Inf" | ".INF" => return Some(signed(f64::INFINITY)),
        ".nan" | ".NaN" | ".NAN" if rest == text => return Some(f64::NAN),
        _ => {}
    }
    if rest.contains(':') {
        return sexagesimal_float(rest).map(signed);
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(index) => (&rest[..index], Some(&rest[index + 1..])),
        None => (rest, None),
    };
    // PyYAML allows no sign before a leading point, and requires one in the exponent then.
    let has_leading_point = mantissa.starts_with('.');
    if has_leading_point && rest.len() != text.len() {
        return None;
    }
    let has_point = mantissa.contains('.');
    if !is_mantissa(mantissa) || !(has_point || exponent.is_some()) {
        return None;
    }
    if let Some(exponent) = exponent {
        let (_, digits) = split_sign(exponent);
        let has_sign = digits.len() != exponent.len();
        if digits.is_empty()
            || !digits.bytes().all(|b| b.is_ascii_digit())
            || (has_leading_point && !has_sign)
        {
            return None;
        }
    }
    rest.replace('_', "").parse().ok().map(signed)
}

fn is_mantissa(mantissa: &str) -> bool {
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits_first = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_digit()) && all_bytes(part, |b| b.is_ascii_digit())
    };
    if whole.is_empty() {
        digits_first(fraction)
    } else {
        digits_first(whole) && (fraction.is_empty() || all_bytes(fraction, |b| b.is_ascii_digit()))
    }
}

fn sexagesimal_float(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.')?;
    let mut parts = whole.split(':');
    let first = parts.next().filter(|head| head.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut total: f64 = first.replace('_', "").parse().ok()?;
    for part in parts {
        total = total * 60.0 + f64::from(base_sixty_digit(part)?);
    }
    if !fraction.is_empty() && !all_bytes(fraction, |b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: f64 = format!("0.{}", fraction.replace('_', "")).parse().ok()?;
    Some(total + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_pyyaml() {
        let text = |t: &str| Value::Text(t.to_owned());
        let cases = [
            ("", Value::Null),
            ("~", Value::Null),
            ("nULL", text("nULL")),
            ("yes", Value::Bool(true)),
            ("Off", Value::Bool(false)),
            ("y", text("y")),
            ("010", Value::Int(8)),
            ("0x1F", Value::Int(31)),
            ("0b101", Value::Int(5)),
            ("0o7", text("0o7")),
            ("1_000", Value::Int(1000)),
            ("-7", Value::Int(-7)),
            ("1:30", Value::Int(90)),
            ("1:60", text("1:60")),
            ("1e3", Value::Float(1000.0)),
            ("1.", Value::Float(1.0)),
            (".5", Value::Float(0.5)),
            ("-.5", text("-.5")),
            (".5e3", text(".5e3")),
            ("1.5e-3", Value::Float(0.0015)),
            ("-.inf", Value::Float(f64::NEG_INFINITY)),
            ("2024-01-01", text("2024-01-01")),
            ("1.2.3", text("1.2.3")),
            ("089", text("089")),
            ("+", text("+")),
            (".", text(".")),
            ("12abc", text("12abc")),
        ];
        for (input, wanted) in cases {
            assert_eq!(resolve(input).unwrap(), wanted, "{input:?}");
        }
    }

    #[test]
    fn integer_beyond_64_bits_is_an_error() {
        assert!(resolve("99999999999999999999").is_err());
    }
}
