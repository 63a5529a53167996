//! Reads the records of a file, JSON Lines or a JSON list, with the line at which each begins.

use serde_json::{Map, Value, value::RawValue};

/// One record of a file.
pub(super) struct Record {
    pub(super) line: u32,
    /// The record, or why it is none.
    pub(super) fields: Result<Map<String, Value>, String>,
}

impl Record {
    pub(super) fn parse(line: u32, text: &str) -> Self {
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Err("a record is a JSON object".to_owned()),
            Err(error) => Err(format!("not JSON, at column {}", error.column())),
        };
        Self { line, fields }
    }
}

/// Reads JSON Lines. Blank lines are skipped.
pub(super) fn json_lines(text: &str) -> Vec<Record> {
    let lines = text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty());
    lines.map(|(text, line)| Record::parse(line, text)).collect()
}

/// Reads a JSON list of objects. The error is the line at which the file is no such list, and why.
pub(super) fn json_list(text: &str) -> Result<Vec<Record>, (u32, String)> {
    let items: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| (error.line() as u32, format!("not a JSON list: {error}")))?;
    let (mut records, mut line, mut position) = (Vec::with_capacity(items.len()), 1, 0);
    for item in items {
        // The items are slices of the text.
        let start = item.get().as_ptr() as usize - text.as_ptr() as usize;
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[position..start]).count() as u32;
        position = start;
        records.push(Record::parse(line, item.get()));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_records_are_known() {
        let lines = json_lines("{\"a\": 1}\n\n[1]\n{\n");
        let got: Vec<(u32, bool)> = lines.iter().map(|record| (record.line, record.fields.is_ok())).collect();
        assert_eq!(got, [(1, true), (3, false), (4, false)]);
        let list = json_list("[\n {\"a\": 1},\n {\"b\":\n 2}, 3,\n {}\n]").unwrap();
        let got: Vec<(u32, bool)> = list.iter().map(|record| (record.line, record.fields.is_ok())).collect();
        assert_eq!(got, [(2, true), (3, true), (4, false), (5, true)]);
        assert_eq!(json_list("[{},\n{]").err().unwrap().0, 2);
    }
}
