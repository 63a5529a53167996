//! The names of files.

use crate::error::BrowserError;

pub(super) const MAX_NAME_BYTES: usize = 200;

/// Checks the name of an upload, which becomes the name of a file on disk.
pub(super) fn check_name(name: &str) -> Result<(), BrowserError> {
    let is_valid = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control);
    if is_valid {
        return Ok(());
    }
    Err(BrowserError::BadArgument(format!(
        "{:?} is not a file name: use 1 to {MAX_NAME_BYTES} bytes without slashes and control characters, not starting with a dot",
        proto::text::cut(name)
    )))
}

/// Makes the name that a site suggests safe and different from the others.
pub(super) fn unique_name(suggested: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let safe: String = suggested
        .chars()
        .map(|c| if c.is_control() || c == '/' || c == '\\' { '_' } else { c })
        .take(100)
        .collect();
    let safe = safe.trim_start_matches('.').to_owned();
    let safe = if safe.is_empty() { "download".to_owned() } else { safe };
    if !is_taken(&safe) {
        return safe;
    }
    let (stem, extension) =
        safe.rsplit_once('.').map_or((safe.as_str(), String::new()), |(stem, end)| (stem, format!(".{end}")));
    let mut names = (1..).map(|number| format!("{stem} ({number}){extension}"));
    names.find(|name| !is_taken(name)).unwrap_or(safe.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\nb", &"x".repeat(201)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["report.pdf", "Übersicht 2026.csv", "a..b"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
