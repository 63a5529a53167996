//! How the grid travels: a cell in sixteen bits, all cells as one text, or only those that changed. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proto::trajectory::Outcome;
use rollout::run::{event::Stage, state::Cell};
use serde_json::{Map, Value, json};

const LARGEST_STEP: u32 = (1 << 9) - 1;

/// Stage in the lowest four bits, outcome (0 = none yet) in the next three, the step above.
pub(super) fn code(cell: &Cell) -> u16 {
    let stage = Stage::ALL.iter().position(|stage| *stage == cell.stage).unwrap_or(0) as u16;
    let outcome = match cell.outcome {
        None => 0,
        Some(Outcome::Success) => 1,
        Some(Outcome::Failure) => 2,
        Some(Outcome::Blocked) => 3,
        Some(Outcome::InfraLost) => 4,
        Some(Outcome::JudgeError) => 5,
        Some(Outcome::Cancelled) => 6,
    };
    stage | (outcome << 4) | ((cell.step.min(LARGEST_STEP) as u16) << 7)
}

/// All cells: little-endian, two bytes each, in base64.
pub(super) fn full(codes: &[u16]) -> Map<String, Value> {
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    Map::from_iter([("full".to_owned(), STANDARD.encode(bytes).into())])
}

/// What changed between two grids: places as gaps from the one before, or everything when that is shorter. Nothing when
/// nothing did.
pub(super) fn delta(before: &[u16], after: &[u16]) -> Option<Map<String, Value>> {
    let changed: Vec<usize> =
        (0..after.len()).filter(|place| before.get(*place) != after.get(*place)).collect();
    if changed.is_empty() {
        return None;
    }
    // A change takes about seven characters, a cell of the whole grid less than three.
    if changed.len() * 7 > after.len() * 3 {
        return Some(full(after));
    }
    let mut last = 0;
    let gaps: Vec<usize> = changed.iter().map(|place| place - std::mem::replace(&mut last, *place)).collect();
    let codes: Vec<u16> = changed.iter().map(|place| after[*place]).collect();
    Some(Map::from_iter([("at".to_owned(), json!(gaps)), ("to".to_owned(), json!(codes))]))
}

/// One message of the stream.
pub(super) fn message(event: &str, id: &str, data: &Value) -> String {
    format!("id: {id}\nevent: {event}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_sixteen_bits() {
        let cell = Cell { stage: Stage::Policy, step: 5, attempt: 2, outcome: None };
        assert_eq!(code(&cell), 6 + (5 << 7));
        let over = Cell { stage: Stage::Finished, step: 9999, attempt: 0, outcome: Some(Outcome::Success) };
        assert_eq!(code(&over), 11 + (1 << 4) + (511 << 7));
    }

    #[test]
    fn only_what_changed_is_sent_unless_all_is_shorter() {
        let before = vec![0u16; 100];
        assert_eq!(delta(&before, &before), None);
        let mut after = before.clone();
        after[3] = 7;
        after[50] = 8;
        assert_eq!(Value::Object(delta(&before, &after).unwrap()), json!({"at": [3, 47], "to": [7, 8]}));
        assert!(delta(&before, &[1; 100]).unwrap().contains_key("full"));
    }
}
