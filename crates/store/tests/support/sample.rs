//! Sample trajectories for tests and benchmarks: every field is set, texts have several scripts, and the same index
//! gives the same trajectory.

#![allow(
    unreachable_pub,
    dead_code,
    reason = "shared by several test programs, which use different parts of it"
)]

use proto::trajectory::{
    Action, Evaluation, Observation, Outcome, Response, Reward, RubricItem, Step, StepExtras, Task, TaskId,
    Trajectory, TrajectoryMetadata,
};
use serde_json::{Map, Value, json};

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

pub fn task(index: i64) -> Task {
    Task {
        task_name: format!("Find the price of item {index} — «ｎº» 🛒"),
        domain: ["Shopping", "Travel", "Reference"][index as usize % 3].to_owned(),
        subdomain: "Catalogue".to_owned(),
        website: format!("https://shop{}.example/", index % 7),
        difficulty: 1 + index % 9,
        evaluator_reference: vec![
            RubricItem { description: "The page of the item was open".to_owned(), difficulty: 1 },
            RubricItem { description: "The price is named".to_owned(), difficulty: 2 },
        ],
        reference_answer: (index % 2 == 0).then(|| format!("{index}.99 €")),
        attempt_level: 0,
        task_id: match index % 3 {
            0 => None,
            1 => Some(TaskId::Number(index)),
            _ => Some(TaskId::Text(format!("task-{index}"))),
        },
        max_steps: 10 + index,
        trajectory_index: index,
        extra: Map::new(),
    }
}

pub fn step(index: i64, number: usize, is_last: bool) -> Step {
    let key = match number {
        _ if is_last => Action::ANSWER,
        n if n % 4 == 3 => Action::GO_BACK,
        _ => "click",
    };
    let arguments = if is_last { json!({"content": "12.99"}) } else { json!({"coordinates": [500, 250.5]}) };
    Step {
        observation: Observation {
            image_path: format!("images/task_{index:04}_ab/step_{number:03}.png"),
            ac_tree: number
                .is_multiple_of(2)
                .then(|| "id: 1, text: Suche, tag: input, type=search".to_owned()),
            title: "Läden".to_owned(),
            url: format!("https://shop{}.example/{number}", index % 7),
        },
        action: Some(Action {
            key: key.to_owned(),
            arguments: object(arguments),
            action_string: format!("{key} at step {number}"),
        }),
        response: Response {
            raw_response: format!("Action: look\n<tool_call>{{\"n\": {number}}}</tool_call>"),
            answering_tokens: object(json!({"thought": "价格", "memory": null, "tool_call": {"name": key}})),
            raw_prompt: prompt(index, number),
        },
        reward: Reward {
            reward: i64::from(is_last && index % 2 == 0),
            evaluation: if is_last {
                Evaluation::Texts(vec!["B: fine".to_owned(), "A: fine".to_owned()])
            } else {
                Evaluation::default()
            },
            is_blocked: false,
            submit: is_last || number == 1,
            submission_judgment: is_last.then(|| "YES".to_owned()),
        },
        same_as_next_screenshot: Some(!is_last && number % 3 == 2),
        extras: StepExtras::default(),
    }
}

/// The messages sent to the model: a system prompt, the earlier turns and the current screenshot.
pub fn prompt(index: i64, number: usize) -> String {
    let image = |n: usize| {
        json!({"type": "image_url",
               "image_url": {"url": format!("file:///data/images/task_{index:04}_ab/step_{n:03}.png")}})
    };
    let mut messages = vec![
        json!({"role": "system", "content": "You are a web agent."}),
        json!({"role": "user", "content": [{"type": "text", "text": "Task: find <image> <video>"}, image(0)]}),
    ];
    for n in 1..=number {
        messages.push(json!({"role": "assistant", "content": format!("reply {}", n - 1)}));
        messages.push(json!({"role": "user", "content": [image(n), {"type": "text", "text": "What next?"}]}));
    }
    Value::Array(messages).to_string()
}

pub fn trajectory(index: i64, steps: usize) -> Trajectory {
    let task = task(index);
    let steps: Vec<Step> = (0..steps).map(|number| step(index, number, number + 1 == steps)).collect();
    let outcome = if index % 2 == 0 { Outcome::Success } else { Outcome::Failure };
    let keypoint_step_ids =
        (0..).zip(&steps).filter(|(_, step)| step.reward.submit).map(|(id, _)| id).collect();
    let metadata =
        TrajectoryMetadata { keypoint_step_ids, outcome: Some(outcome), ..TrajectoryMetadata::default() };
    Trajectory { task, steps, metadata }
}
