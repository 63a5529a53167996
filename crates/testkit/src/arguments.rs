//! `--name value` words of the programs that are run for minutes by hand.

use std::{collections::BTreeMap, path::PathBuf};

pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Those this program was started with. Stops it, with words, at one that is not `known`.
    pub fn read(known: &[&str]) -> Self {
        Self::of(std::env::args().skip(1), known).unwrap_or_else(|why| {
            eprintln!("{why}");
            std::process::exit(2)
        })
    }

    fn of(mut words: impl Iterator<Item = String>, known: &[&str]) -> Result<Self, String> {
        let mut given = BTreeMap::new();
        while let Some(name) = words.next() {
            if !known.contains(&name.as_str()) {
                return Err(format!("there is no {name}; there are: {}", known.join(", ")));
            }
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            given.insert(name, value);
        }
        Ok(Self(given))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)
            .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
    }

    /// Made absolute. Not below `/tmp`, which a run in a machine of its own does not see.
    pub fn path(&self, name: &str, default: &str) -> PathBuf {
        let path = std::path::absolute(self.text(name).unwrap_or(default)).expect("a path");
        assert!(!path.starts_with("/tmp"), "{name}: /tmp is hidden from the run; give a path elsewhere");
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<Arguments, String> {
        Arguments::of(words.split_whitespace().map(str::to_owned), &["--seed", "--out"])
    }

    #[test]
    fn words_are_named() {
        let given = of("--seed 7 --out here").unwrap();
        assert_eq!((given.number("--seed"), given.text("--out")), (Some(7), Some("here")));
        assert_eq!(of("").unwrap().number("--seed"), None);
        assert!(of("--sead 7").err().unwrap().contains("no --sead; there are: --seed, --out"));
        assert_eq!(of("--seed").err().unwrap(), "--seed needs a value");
    }
}
