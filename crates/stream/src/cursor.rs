//! The cursor of an item: which run, and the item's number in the order of the journal, from 1. Numbers never change: the
//! journal is only appended to, and only what is durable gets a number.

use std::{fmt, str::FromStr};

/// Names an item. The text form, such as `9f3a01bc-17`, is meant to be stored and sent back, not to be taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The checksum of the journal's first record.
    pub(crate) run: u32,
    pub(crate) position: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.run, self.position)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (run, position) = text.split_once('-').ok_or(InvalidCursor)?;
        let is_hex = run.len() == 8 && run.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_number = !position.is_empty() && position.bytes().all(|byte| byte.is_ascii_digit());
        // One text per cursor, so that cursors can be compared as text.
        let is_canonical = position == "0" || !position.starts_with('0');
        if !is_hex || !is_number || !is_canonical {
            return Err(InvalidCursor);
        }
        let run = u32::from_str_radix(run, 16).map_err(|_| InvalidCursor)?;
        Ok(Self { run, position: position.parse().map_err(|_| InvalidCursor)? })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of a stream, such as 9f3a01bc-17")]
pub(crate) struct InvalidCursor;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn written_cursor_is_read_back() {
        for cursor in [
            Cursor { run: 0, position: 0 },
            Cursor { run: 0x9f3a_01bc, position: 17 },
            Cursor { run: 1, position: u64::MAX },
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    proptest! {
        #[test]
        fn accepted_text_is_the_text_of_its_cursor(text in "[0-9a-f+ -]{0,30}|[0-9a-f]{8}-[0-9]{1,21}|.{0,20}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }

    #[test]
    fn other_text_is_not_a_cursor() {
        for text in [
            "",
            "-",
            "17",
            "9f3a01bc",
            "9f3a01bc-",
            "9F3A01BC-1",
            "9f3a01b-1",
            "9f3a01bcd-1",
            "9f3a01bc-01",
            "9f3a01bc-+1",
            "9f3a01bc--1",
            "9f3a01bc-18446744073709551616",
            "9f3a01bc-1 ",
            "+f3a01bc-1",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text:?}");
        }
    }
}
