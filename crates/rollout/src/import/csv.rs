//! Reads comma-separated values as RFC 4180 describes them.

use serde_json::{Map, Value};

use super::records::Record;

/// Reads a file whose first row names the columns. The error is the line and the reason.
pub(super) fn records(text: &str) -> Result<Vec<Record>, (u32, String)> {
    let mut rows = rows(text)?.into_iter();
    let Some((_, columns)) = rows.next() else { return Ok(Vec::new()) };
    Ok(rows.map(|(line, values)| Record { line, fields: fields(&columns, values) }).collect())
}

fn fields(columns: &[String], values: Vec<String>) -> Result<Map<String, Value>, String> {
    if values.len() != columns.len() {
        return Err(format!("{} values for {} columns", values.len(), columns.len()));
    }
    Ok(columns.iter().cloned().zip(values.into_iter().map(Value::from)).collect())
}

/// The values of a row, and the line at which it begins.
type Row = (u32, Vec<String>);

/// Splits the text into rows. Blank lines are skipped.
fn rows(text: &str) -> Result<Vec<Row>, (u32, String)> {
    let mut rows = Vec::new();
    let (mut row, mut value) = (Vec::new(), String::new());
    let (mut line, mut row_line) = (1, 1);
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        line += u32::from(character == '\n');
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                value.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            _ if is_quoted => value.push(character),
            '"' if value.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            ',' => {
                row.push(std::mem::take(&mut value));
                was_quoted = false;
            }
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                if !row.is_empty() || !value.is_empty() || was_quoted {
                    row.push(std::mem::take(&mut value));
                    rows.push((row_line, std::mem::take(&mut row)));
                }
                (was_quoted, row_line) = (false, line);
            }
            _ if was_quoted => return Err((line, "text after a closing quote".into())),
            other => value.push(other),
        }
    }
    if is_quoted {
        return Err((row_line, "a quote is not closed".into()));
    }
    if !row.is_empty() || !value.is_empty() || was_quoted {
        row.push(value);
        rows.push((row_line, row));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_line_breaks_are_read() {
        let text = "a,b\r\n1,\"two, \"\"2\"\"\nlines\"\r\n\r\n,\"\"\n3\n";
        let got: Vec<(u32, Result<Vec<String>, String>)> = records(text)
            .unwrap()
            .into_iter()
            .map(|record| {
                let values = |fields: Map<String, Value>| {
                    fields.values().map(|value| value.as_str().unwrap().to_owned()).collect()
                };
                (record.line, record.fields.map(values))
            })
            .collect();
        let owned = |values: [&str; 2]| Ok(values.map(str::to_owned).to_vec());
        let expected = [
            (2, owned(["1", "two, \"2\"\nlines"])),
            (5, owned(["", ""])),
            (6, Err("1 values for 2 columns".to_owned())),
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn broken_quotes_name_their_line() {
        assert_eq!(records("a\n\"x\ny").err().unwrap(), (2, "a quote is not closed".into()));
        assert_eq!(records("a\n\"x\"y\n").err().unwrap(), (2, "text after a closing quote".into()));
    }
}
