//! Tasks on a site that lets nobody in: what comes of them is that they are blocked.

use super::Question;
use crate::vault::{PAINTINGS, READING_ROOM_OPENS};

pub(super) fn questions() -> Vec<Option<Question>> {
    let ask = |id, difficulty, words: &str, answer: String| {
        Some(Question {
            site: "vault",
            domain: "Museums",
            topic: "Opening hours",
            id,
            difficulty,
            words: words.to_owned(),
            start: "/".to_owned(),
            facts: vec!["A page of the museum with the fact in question is visible.".to_owned()],
            answer,
        })
    };
    vec![
        ask(
            "reading-room",
            2,
            "At what time does the reading room of the Vault museum open?",
            READING_ROOM_OPENS.to_owned(),
        ),
        ask("paintings", 3, "How many paintings does the Vault museum show?", PAINTINGS.to_string()),
    ]
}
