//! Formats and parses counts for messages and arguments.

/// Returns a count with its noun: `1 instance`, `2 instances`.
pub(crate) fn count_of(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Parses a count from the command line.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| "give a whole number, for example 8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noun_is_plural_except_for_one() {
        let counts = [0, 1, 2].map(|number| count_of(number, "instance"));
        assert_eq!(counts, ["0 instances", "1 instance", "2 instances"]);
    }

    #[test]
    fn only_whole_numbers_are_counts() {
        assert_eq!(parse_count("8"), Ok(8));
        for wrong in ["two", "1.5", "-1", ""] {
            assert!(parse_count(wrong).unwrap_err().contains("a whole number"), "{wrong}");
        }
    }
}
