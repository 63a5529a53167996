//! Encodes the task grid and the messages of the event stream. A cell takes sixteen bits; an update carries either all
//! cells or only those that changed. Pure functions; the page decodes them in `ui/src/monitor/cells.ts`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proto::trajectory::Outcome;
use rollout::run::{event::Stage, state::Cell};
use serde_json::{Map, Value, json};

/// Largest step number that fits into the nine bits of a cell.
const MAX_STEP: u32 = (1 << 9) - 1;

/// Encodes a cell: stage in bits 0–3, outcome (0 = none yet) in bits 4–6, step number in bits 7–15.
pub(super) fn encode_cell(cell: &Cell) -> u16 {
    let stage = Stage::ALL.iter().position(|stage| *stage == cell.stage).unwrap_or(0) as u16;
    let outcome = match cell.outcome {
        None => 0,
        Some(Outcome::Success) => 1,
        Some(Outcome::Failure) => 2,
        Some(Outcome::Blocked) => 3,
        Some(Outcome::InfraLost) => 4,
        Some(Outcome::JudgeError) => 5,
        Some(Outcome::Cancelled) => 6,
        Some(Outcome::ReplayMiss) => 7,
    };
    stage | (outcome << 4) | ((cell.step.min(MAX_STEP) as u16) << 7)
}

/// Encodes all cells as base64 of little-endian 16-bit codes.
pub(super) fn encode_full(codes: &[u16]) -> Map<String, Value> {
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    Map::from_iter([("full".to_owned(), STANDARD.encode(bytes).into())])
}

/// Returns the difference between two grids, or `None` if they are equal. Positions are sent as distances from the
/// previous changed position. The full grid is sent instead when it has another size, or is shorter because most cells
/// changed.
pub(super) fn encode_delta(before: &[u16], after: &[u16]) -> Option<Map<String, Value>> {
    let changed: Vec<usize> =
        (0..after.len()).filter(|position| before.get(*position) != after.get(*position)).collect();
    if changed.is_empty() {
        return None;
    }
    // A change takes about seven characters, a cell of the full grid less than three.
    if before.len() != after.len() || changed.len() * 7 > after.len() * 3 {
        return Some(encode_full(after));
    }
    let mut last = 0;
    let gaps: Vec<usize> =
        changed.iter().map(|position| position - std::mem::replace(&mut last, *position)).collect();
    let codes: Vec<u16> = changed.iter().map(|position| after[*position]).collect();
    Some(Map::from_iter([("at".to_owned(), json!(gaps)), ("to".to_owned(), json!(codes))]))
}

/// Formats one message of the `text/event-stream` response.
pub(super) fn sse_message(event: &str, id: &str, data: &Value) -> String {
    format!("id: {id}\nevent: {event}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_fits_in_sixteen_bits() {
        let cell = Cell { stage: Stage::Policy, step: 5, attempt: 2, outcome: None };
        assert_eq!(encode_cell(&cell), 6 + (5 << 7));
        let large = Cell { stage: Stage::Finished, step: 9999, attempt: 0, outcome: Some(Outcome::Success) };
        assert_eq!(encode_cell(&large), 11 + (1 << 4) + (511 << 7));
    }

    /// The page's list of outcomes, in which the number of an outcome is its position.
    #[test]
    fn page_decodes_every_outcome() {
        let page = include_str!("../../ui/src/monitor/cells.ts");
        let list = page.split_once("export const OUTCOMES = [").unwrap().1.split_once(']').unwrap().0;
        let names: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('\'')).collect();
        for outcome in Outcome::ALL {
            let cell = Cell { stage: Stage::NotStarted, step: 0, attempt: 0, outcome: Some(outcome) };
            assert_eq!(names[usize::from(encode_cell(&cell) >> 4)], outcome.as_str());
        }
        assert_eq!(names.len(), Outcome::ALL.len() + 1);
    }

    #[test]
    fn delta_is_sent_unless_full_is_shorter() {
        let before = vec![0u16; 100];
        assert_eq!(encode_delta(&before, &before), None);
        let mut after = before.clone();
        after[3] = 7;
        after[50] = 8;
        assert_eq!(
            Value::Object(encode_delta(&before, &after).unwrap()),
            json!({"at": [3, 47], "to": [7, 8]})
        );
        assert!(encode_delta(&before, &[1; 100]).unwrap().contains_key("full"));
        assert!(
            encode_delta(&before, &[0; 101]).unwrap().contains_key("full"),
            "the page must know the size"
        );
    }
}
