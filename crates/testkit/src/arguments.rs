//! Parses the `--name value` arguments of the long-running example programs.

use std::{collections::BTreeMap, path::PathBuf};

pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Parses the arguments of this process. Exits with status 2 and a message if one is not in `known`.
    pub fn from_env(known: &[&str]) -> Self {
        Self::parse(std::env::args().skip(1), known).unwrap_or_else(|reason| exit(&reason))
    }

    fn parse(mut arguments: impl Iterator<Item = String>, known: &[&str]) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        while let Some(name) = arguments.next() {
            if !known.contains(&name.as_str()) {
                return Err(format!("unknown argument {name}; accepted: {}", known.join(", ")));
            }
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            values.insert(name, value);
        }
        Ok(Self(values))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the number given as `name`. Exits with status 2 if the value is not a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.try_number(name).unwrap_or_else(|reason| exit(&reason))
    }

    fn try_number(&self, name: &str) -> Result<Option<u64>, String> {
        let parse =
            |text: &str| text.parse().map_err(|_| format!("{name} must be a whole number, not {text:?}"));
        self.text(name).map(parse).transpose()
    }

    /// Returns the path given as `name`, or `default`, as an absolute path.
    pub fn path(&self, name: &str, default: &str) -> PathBuf {
        let path = self.text(name).unwrap_or(default);
        std::path::absolute(path).unwrap_or_else(|error| exit(&format!("{name} {path:?}: {error}")))
    }

    /// Returns the path of an existing program. Exits with status 2 if it does not exist.
    pub fn program(&self, name: &str, default: &str) -> PathBuf {
        let path = self.path(name, default);
        if !path.is_file() {
            exit(&format!("{name}: {} does not exist; build it with cargo build --release", path.display()));
        }
        path
    }

    /// Returns the path of a folder and creates it. Exits with status 2 if that fails.
    pub fn folder(&self, name: &str, default: &str) -> PathBuf {
        let path = self.path(name, default);
        if let Err(error) = std::fs::create_dir_all(&path) {
            exit(&format!("{name}: cannot create {}: {error}", path.display()));
        }
        path
    }
}

/// Prints a message and ends the process with the exit status for wrong usage.
pub fn exit(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Arguments, String> {
        Arguments::parse(arguments.split_whitespace().map(str::to_owned), &["--seed", "--out"])
    }

    #[test]
    fn arguments_are_found_by_name() {
        let given = parse("--seed 7 --out here").unwrap();
        assert_eq!((given.number("--seed"), given.text("--out")), (Some(7), Some("here")));
        assert_eq!(parse("").unwrap().number("--seed"), None);
    }

    #[test]
    fn wrong_arguments_are_explained() {
        assert_eq!(parse("--sead 7").err().unwrap(), "unknown argument --sead; accepted: --seed, --out");
        assert_eq!(parse("--seed").err().unwrap(), "--seed needs a value");
        let seed = parse("--seed seven").unwrap().try_number("--seed");
        assert_eq!(seed.unwrap_err(), "--seed must be a whole number, not \"seven\"");
    }
}
