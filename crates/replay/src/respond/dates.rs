//! Dates in headers. Browsers compare them with their own clock, so a replay moves them.

use jiff::{
    Timestamp,
    fmt::rfc2822::{DateTimeParser, DateTimePrinter},
};

use crate::Headers;

pub(super) fn parse_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

/// Moves `Date` and `Expires` by the time between recording and replay, and removes `Age`: a response stays fresh for as
/// long as it did when it was recorded.
pub fn shift_dates(headers: &mut Headers, recorded: Timestamp, now: Timestamp) {
    let distance = now.duration_since(recorded);
    for (name, value) in headers.iter_mut() {
        if !["date", "expires"].iter().any(|date| name.eq_ignore_ascii_case(date)) {
            continue;
        }
        let date = std::str::from_utf8(value).ok().and_then(parse_date);
        let moved = date.and_then(|date| date.checked_add(distance).ok());
        let text = moved.and_then(|date| DateTimePrinter::new().timestamp_to_rfc9110_string(&date).ok());
        if let Some(text) = text {
            *value = text.into_bytes();
        }
    }
    headers.remove("age");
}
