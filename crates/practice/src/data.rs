//! Loads the JSON files under `data/`, which are embedded in the binary.
//! The files are fixed at build time, so an invalid file is a bug; the tests load every file.

use serde::Deserialize;

/// Parses an embedded file. Strings are borrowed from the file, so they must not contain JSON escapes.
pub(crate) fn parse<T: Deserialize<'static>>(path: &str, text: &'static str) -> T {
    serde_json::from_str(text)
        .unwrap_or_else(|error| panic!("crates/practice/data/{path} is invalid: {error}"))
}

/// Embeds and parses a file; the path is relative to `crates/practice/data`.
macro_rules! load {
    ($path:literal) => {
        $crate::data::parse($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/", $path)))
    };
}
pub(crate) use load;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "data/example.json is invalid: missing field `name` at line 1 column 2")]
    fn invalid_file_is_named_in_the_panic() {
        #[derive(Deserialize)]
        struct Example {
            #[allow(dead_code, reason = "only parsed")]
            name: &'static str,
        }
        let _: Example = parse("example.json", "{}");
    }
}
