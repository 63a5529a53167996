//! Small words that several commands say: counts, and what is wrong with a number.

/// `1 instance`, `2 instances`.
pub(crate) fn counted(number: usize, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {one}{ending}")
}

/// Reads how many, for the command line.
pub(crate) fn how_many(text: &str) -> Result<usize, String> {
    text.trim().parse().map_err(|_| "give a whole number, for example 8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one() {
        let counts = [0, 1, 2].map(|number| counted(number, "instance"));
        assert_eq!(counts, ["0 instances", "1 instance", "2 instances"]);
    }

    #[test]
    fn how_many_is_a_whole_number() {
        assert_eq!(how_many("8"), Ok(8));
        for wrong in ["two", "1.5", "-1", ""] {
            assert!(how_many(wrong).unwrap_err().contains("a whole number"), "{wrong}");
        }
    }
}
