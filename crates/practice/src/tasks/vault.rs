//! Tasks on the site that blocks every visitor. They cannot be solved; the expected outcome is "blocked".

use super::Question;
use crate::vault::{PAINTINGS, READING_ROOM_OPENS};

pub(super) fn questions() -> Vec<Option<Question>> {
    let question = |id, difficulty, text: &str, answer: String| {
        Some(Question {
            site: "vault",
            domain: "Museums",
            topic: "Opening hours",
            id,
            difficulty,
            text: text.to_owned(),
            start: "/".to_owned(),
            criteria: vec!["A page of the museum with the fact in question is visible.".to_owned()],
            answer,
        })
    };
    vec![
        question(
            "reading-room",
            2,
            "At what time does the reading room of the Vault museum open?",
            READING_ROOM_OPENS.to_owned(),
        ),
        question("paintings", 3, "How many paintings does the Vault museum show?", PAINTINGS.to_string()),
    ]
}
