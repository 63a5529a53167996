//! `webgym compare`: decides whether answers state the same as reference answers, for programs that judge by themselves.

use std::{
    io::{BufRead, Write, stdin, stdout},
    process::ExitCode,
};

use anyhow::{Context, bail};
use rollout::judge::reference::compare;
use serde_json::{Value, json};

/// Answers every line of the input `{"answer":…,"reference":…}` with `{"matches":…,"reason":…}`.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut out = stdout().lock();
    for (index, line) in stdin().lock().lines().enumerate() {
        let line = line.context("cannot read the input")?;
        let decision = compare_line(&line).with_context(|| format!("line {} of the input", index + 1))?;
        writeln!(out, "{decision}").and_then(|()| out.flush()).context("cannot write the result")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compare_line(line: &str) -> anyhow::Result<Value> {
    let pair: Value = serde_json::from_str(line).context("not JSON")?;
    let (Some(answer), Some(reference)) = (pair["answer"].as_str(), pair["reference"].as_str()) else {
        bail!("it must be an object with the strings \"answer\" and \"reference\"");
    };
    let decision = compare(answer, reference);
    Ok(json!({"matches": decision.matches, "reason": decision.reason}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_compared_or_explained() {
        let matching = compare_line(r#"{"answer": "It costs 12 dollars", "reference": "$12"}"#).unwrap();
        assert_eq!(matching["matches"], true);
        assert_eq!(compare_line(r#"{"answer": "red", "reference": "blue"}"#).unwrap()["matches"], false);
        for invalid in ["{", "[]", r#"{"answer": 1, "reference": "x"}"#] {
            assert!(compare_line(invalid).is_err(), "{invalid}");
        }
    }
}
