//! A sample turn, on which templates are checked and shown.

use proto::{
    InteractionMode,
    trajectory::{Action, Observation, Response, Step, Task},
};
use serde_json::json;

/// The steps before the sample turn: more than are sent in full, so that some are summarized.
const STEPS: usize = 6;

/// Returns a task, the steps so far, and the current page.
pub fn sample_turn(mode: InteractionMode) -> (Task, Vec<Step>, Observation) {
    let task = Task {
        task_name: "Find the opening hours of the library.".to_owned(),
        website: "https://library.example/".to_owned(),
        max_steps: 15,
        ..Task::default()
    };
    let history = (0..STEPS).map(|number| step(number, mode)).collect();
    (task, history, observation(STEPS))
}

fn step(number: usize, mode: InteractionMode) -> Step {
    let arguments = match mode {
        InteractionMode::Coordinates => json!({"coordinates": [500, 120]}),
        InteractionMode::SetOfMarks => json!({"element_id": "7"}),
    };
    let mut tokens = serde_json::Map::new();
    tokens.insert("observation".to_owned(), json!("The page changed; you are at https://library.example/."));
    Step {
        observation: observation(number),
        action: Some(Action {
            key: "click".to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            action_string: "I open the page with the opening hours.".to_owned(),
        }),
        response: Response {
            raw_response: "Action: I open the page with the opening hours.".to_owned(),
            answering_tokens: tokens,
            ..Response::default()
        },
        same_as_next_screenshot: Some(number.is_multiple_of(2)),
        ..Step::default()
    }
}

fn observation(number: usize) -> Observation {
    Observation {
        image_path: format!("step_{number:03}.png"),
        ac_tree: Some("[7] link \"Opening hours\"".to_owned()),
        title: format!("Page {number}"),
        url: format!("https://library.example/{number}"),
    }
}
