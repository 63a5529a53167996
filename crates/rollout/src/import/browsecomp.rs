//! BrowseComp: a CSV file with `problem`, `answer`, `problem_topic` and `canary`. Problem and answer are encrypted, so that
//! they do not end up in training data: XOR with the SHA-256 digest of the canary, repeated, as base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::task_draft::{HARD, TaskDraft, required};

pub(super) fn convert(
    index: usize,
    record: &mut Map<String, Value>,
    website: &str,
) -> Result<TaskDraft, String> {
    let canary = required(record, "canary")?;
    let problem = decrypt("problem", required(record, "problem")?, canary)?;
    let answer = decrypt("answer", required(record, "answer")?, canary)?;
    let topic = record.get("problem_topic").and_then(Value::as_str).unwrap_or("BrowseComp").to_owned();
    // The task has both in plain text.
    record.shift_remove("problem");
    record.shift_remove("answer");
    Ok(TaskDraft {
        task_id: format!("browsecomp-{index}").into(),
        task_name: problem,
        website: website.to_owned(),
        domain: "BrowseComp".into(),
        subdomain: topic,
        difficulty: HARD,
        definite_answer: Some(answer),
        ..TaskDraft::default()
    })
}

fn decrypt(name: &str, text: &str, canary: &str) -> Result<String, String> {
    let encrypted = STANDARD.decode(text.trim()).map_err(|error| format!("{name} is not base64: {error}"))?;
    let key = Sha256::digest(canary.as_bytes());
    let plain = encrypted.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    let plain = String::from_utf8(plain).ok().filter(|plain| !plain.trim().is_empty());
    plain.ok_or_else(|| format!("{name} cannot be decrypted with the canary of its row"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decrypted_with_its_canary() {
        // Encrypted with the reference implementation in Python.
        let encoded = "27P6mOxFvwLxt+/HtziecEWrAOqvuXBVF3Psg7jk+mv7qfrM/he5Aqu3";
        let text = "Who wrote it? ".repeat(3);
        assert_eq!(decrypt("problem", encoded, "canary-1"), Ok(text));
        assert!(decrypt("problem", encoded, "canary-2").unwrap_err().contains("cannot be decrypted"));
        assert!(decrypt("answer", "@", "canary-1").unwrap_err().contains("answer is not base64"));
    }
}
