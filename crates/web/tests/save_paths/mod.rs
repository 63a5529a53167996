//! Save paths for the tests of the viewer: a small one that contains every case, and larger ones for plots and benchmarks.
//! Deterministic.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "test helpers; each test uses some of them"
)]

use std::collections::HashMap;
use std::path::Path;

use proto::trajectory::{
    Action, Evaluation, Observation, Outcome, Response, Reward, RubricItem, Step, StepExtras, Task, TaskId,
    Trajectory, TrajectoryMetadata,
};
use serde_json::{Map, Value, json};
use store::durable::Existing;
use store::pt::PtWriter;
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath, Split};

/// Text of a page or model that tries to be interpreted as markup, script or control characters.
pub(crate) const HOSTILE: &str =
    "<img src=x onerror=\"window.broken=1\"><script>window.broken=2</script> \u{202e}txet \u{7} ']\"}";

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

pub(crate) fn action(key: &str, arguments: Value, sentence: &str) -> Action {
    Action { key: key.to_owned(), arguments: object(arguments), action_string: sentence.to_owned() }
}

fn domain(index: i64) -> &'static str {
    ["Shopping", "Travel", "Reference", "Jobs"][index as usize % 4]
}

pub(crate) fn task(index: i64) -> Task {
    let thing = ["a kettle", "a night train", "the tallest tower", "a gardener's job"][index as usize % 4];
    Task {
        task_name: format!("Find {thing} and say its price, number {index}"),
        domain: domain(index).to_owned(),
        subdomain: "Catalogue".to_owned(),
        website: format!("https://{}{}.example/", domain(index).to_lowercase(), index % 3),
        difficulty: 1 + index % 9,
        evaluator_reference: vec![
            RubricItem { description: "The page of the item was open".to_owned(), difficulty: 1 },
            RubricItem { description: "The price is named".to_owned(), difficulty: 2 },
            RubricItem { description: "It was sorted by price".to_owned(), difficulty: 3 },
        ],
        reference_answer: Some(format!("{index}.99 €")),
        attempt_level: 0,
        task_id: Some(TaskId::Text(format!("task-{index}"))),
        max_steps: 20,
        trajectory_index: index,
        extra: Map::new(),
    }
}

/// Returns the actions of a trajectory: one of each kind that is drawn on the screenshot.
pub(crate) fn actions() -> Vec<Action> {
    vec![
        action("click", json!({"coordinate": [250, 500]}), "Click [250, 500]"),
        action("type", json!({"coordinate": [100, 200, 300, 260], "text": "kettle"}), "Type [kettle]"),
        action("scroll", json!({"direction": "down"}), "Scroll [down]"),
        action("click", json!({"element_id": "12"}), "Click [12]"),
        action("goback", json!({}), "Go back"),
        action("answer", json!({"text": "12.99 €"}), "ANSWER [12.99 €]"),
    ]
}

fn step(index: i64, number: usize, action: &Action) -> Step {
    Step {
        observation: Observation {
            image_path: format!("images/task_{index:04}_ab/step_{number:03}.png"),
            ac_tree: Some(
                "id: 1, text: Home, tag: a\nid: 12, text: Search, tag: input, type=search".to_owned(),
            ),
            title: format!("Page {number}"),
            url: format!("https://shop.example/{number}?q=a&b"),
        },
        action: Some(action.clone()),
        response: Response {
            raw_response: format!(
                "Memory: seen {number}\nAction: {}\n<tool_call>…</tool_call>",
                action.action_string
            ),
            answering_tokens: object(json!({
                "memory": format!("seen {number} pages"), "progress": "half way", "intention": "go on",
                "action": action.action_string, "observation": "The page changed.", "thought": "all of it",
            })),
            raw_prompt: json!([
                {"role": "system", "content": "You operate a browser."},
                {"role": "user", "content": [{"type": "text", "text": "What next?"},
                    {"type": "image_url", "image_url": {"url": "file:///data/step_000.png"}}]},
            ])
            .to_string(),
        },
        reward: Reward {
            submit: number % 2 == 1,
            submission_judgment: Some(format!("It shows page {number}.\nYES")),
            ..Reward::default()
        },
        same_as_next_screenshot: Some(number == 2),
        extras: StepExtras {
            token_ids: Some(vec![1, 2, 3]),
            timings_ms: object(json!({"policy": 800.0 + 300.0 * number as f64, "execute": 420.5})),
            ..StepExtras::default()
        },
    }
}

/// Returns a trajectory with every kind of action. Even indices succeed.
pub(crate) fn trajectory(index: i64) -> Trajectory {
    let mut steps: Vec<Step> =
        actions().iter().enumerate().map(|(number, action)| step(index, number, action)).collect();
    let is_success = index % 2 == 0;
    if let Some(last) = steps.last_mut() {
        last.same_as_next_screenshot = None;
        last.reward.reward = i64::from(is_success);
        last.reward.evaluation = Evaluation::Texts(vec![
            "Blocking: The site let it in.\nBlocked: NO".to_owned(),
            "Criterion B: The price is on the page.\nVerdict: SUCCESS".to_owned(),
            "Criterion A, item 1: The page was open.\nVerdict: SUCCESS".to_owned(),
            format!(
                "Criterion A, item 2: Read it.\nVerdict: {}SUCCESS",
                if is_success { "" } else { "NOT " }
            ),
        ]);
    }
    let outcome = Some(if is_success { Outcome::Success } else { Outcome::Failure });
    let extra = Map::from_iter([("ending".to_owned(), "answered".into())]);
    let metadata = TrajectoryMetadata {
        keypoint_step_ids: vec![1, 3, 5],
        outcome,
        extra,
        ..TrajectoryMetadata::default()
    };
    Trajectory { task: task(index), steps, metadata }
}

/// Returns a trajectory in which every text is hostile.
pub(crate) fn hostile(index: i64) -> Trajectory {
    let mut trajectory = trajectory(index);
    let text = || HOSTILE.to_owned();
    let task = &mut trajectory.task;
    (task.task_name, task.domain, task.subdomain) = (text(), text(), text());
    "javascript:window.broken=3".clone_into(&mut task.website);
    task.reference_answer = Some(text());
    task.evaluator_reference[0].description = text();
    for step in &mut trajectory.steps {
        (step.observation.title, step.observation.url) = (text(), "javascript:window.broken=4".to_owned());
        step.observation.ac_tree = Some(format!("id: 12, text: {HOSTILE}"));
        step.response.raw_response = text();
        step.response.raw_prompt = text();
        step.response.answering_tokens =
            object(json!({"memory": HOSTILE, "action": HOSTILE, "thinking": HOSTILE}));
        step.reward.submission_judgment = Some(text());
        step.reward.evaluation = Evaluation::Text(text());
        if let Some(action) = &mut step.action {
            action.arguments.insert("text".to_owned(), HOSTILE.into());
            action.action_string = text();
        }
    }
    trajectory
}

const MARK_12: [u8; 3] = [17, 97, 176];

/// Returns a PNG of one colour with a darker bar at the top and set-of-marks mark 12 on it.
pub(crate) fn screenshot(shade: u8) -> Vec<u8> {
    let (width, height) = (640_usize, 400_usize);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 640, 400);
    encoder.set_color(png::ColorType::Rgb);
    let mut pixels: Vec<u8> = (0..height)
        .flat_map(|row| {
            let dark = if row < 40 { 90 } else { 0 };
            [shade.saturating_sub(dark), 200_u8.saturating_sub(dark), 220_u8.saturating_sub(dark)]
                .repeat(width)
        })
        .collect();
    // Draw mark 12 as the farm does: a two-pixel outline in the mark's colour.
    for (row, column) in (100..160).flat_map(|row| (64..320).map(move |column| (row, column))) {
        if !(102..158).contains(&row) || !(66..318).contains(&column) {
            let offset = 3 * (row * width + column);
            pixels[offset..offset + 3].copy_from_slice(&MARK_12);
        }
    }
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    bytes
}

/// Writes the screenshots of all steps. `encoded` keeps them by shade, so that each is encoded once.
pub(crate) fn write_screenshots(
    save_path: &SavePath,
    trajectory: &Trajectory,
    encoded: &mut HashMap<u8, Vec<u8>>,
) {
    for (number, step) in trajectory.steps.iter().enumerate() {
        let path = save_path.root().join(&step.observation.image_path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let shade = u8::try_from(40 * number % 256).unwrap();
        std::fs::write(path, encoded.entry(shade).or_insert_with(|| screenshot(shade))).unwrap();
    }
}

pub(crate) fn write_iteration(save_path: &SavePath, split: Split, number: u64, trajectories: &[Trajectory]) {
    save_path.create_directories(split).unwrap();
    let metadata = RunMetadata {
        solution_model: Some("practice-model".to_owned()),
        iteration: i64::try_from(number).ok(),
        ..RunMetadata::default()
    };
    let path = save_path.iteration_file(IterationId::new(split, number));
    let mut writer = PtWriter::create(&path).unwrap();
    for trajectory in trajectories {
        writer.push(trajectory).unwrap();
    }
    writer.finish(&metadata, Existing::Refuse).unwrap();
}

/// Creates the journal of a run with this many tasks.
pub(crate) fn journal(save_path: &SavePath, tasks: u64) -> Journal {
    save_path.create_directories(Split::Train).unwrap();
    let run = RunRecord {
        split: Split::Train,
        iteration: 0,
        rank: None,
        seed: 7,
        config_digest: String::new(),
        tasks,
        metadata: RunMetadata::default(),
    };
    Journal::create(&save_path.journal(IterationId::new(Split::Train, 0)), &run).unwrap()
}

/// Writes two train iterations and one test iteration. Trajectory 5 of train iteration 1 is hostile; trajectory 3 has no
/// screenshot files.
pub(crate) fn small(root: &Path) -> SavePath {
    let save_path = SavePath::new(root);
    let first: Vec<Trajectory> = (0..12).map(trajectory).collect();
    let mut second: Vec<Trajectory> = (0..8).map(trajectory).collect();
    second[5] = hostile(5);
    let mut encoded = HashMap::new();
    for trajectory in first.iter().filter(|trajectory| trajectory.task.trajectory_index != 3) {
        write_screenshots(&save_path, trajectory, &mut encoded);
    }
    write_iteration(&save_path, Split::Train, 0, &first);
    write_iteration(&save_path, Split::Train, 1, &second);
    write_iteration(&save_path, Split::Test, 0, &first[..4]);
    save_path
}

/// Returns an iteration of a simulated agent that improves over the iterations. Numbers from 100 are test iterations, in
/// which every task is repeated three times and every third one is not out of distribution.
pub(crate) fn learning(iteration: u64, count: i64) -> Vec<Trajectory> {
    let round = i64::try_from(iteration % 100).unwrap();
    let is_test = iteration >= 100;
    let chance = |seed: i64| f64::from(u16::try_from((seed * 7919 + round * 104_729) % 997).unwrap()) / 997.0;
    let simulate = |number: i64| {
        let index = if is_test { number / 3 } else { number + round * 31 };
        let mut trajectory = trajectory(index);
        if is_test && index % 3 == 0 {
            trajectory.task.extra.insert("distribution".to_owned(), "id".into());
        }
        trajectory.task.trajectory_index = number;
        let difficulty = trajectory.task.difficulty as f64;
        let skill = (0.75 - 0.07 * difficulty + 0.035 * round as f64).clamp(0.03, 0.96);
        let is_success = chance(if is_test { number * 3 + 1 } else { index * 3 + 1 }) < skill;
        let keep = if chance(index + 5) < 0.06 - 0.004 * round as f64 { 2 } else { 6 };
        trajectory.steps.truncate(keep);
        let extra = ((difficulty / 2.0) * (1.4 - 0.05 * round as f64)) as usize;
        if keep == 6 {
            let filler = trajectory.steps[if chance(index) < 0.3 { 4 } else { 0 }].clone();
            for _ in 0..extra {
                trajectory.steps.insert(1, filler.clone());
            }
        }
        for step in &mut trajectory.steps {
            let length = |characters: i64| "x".repeat(usize::try_from(characters).unwrap());
            step.response.raw_response = format!(
                "Memory: {}\n{}",
                length(40 + round * 5 + index % 20),
                length(210 + round * 9 + index % 40)
            );
            step.reward.reward = 0;
        }
        let last = trajectory.steps.last_mut().unwrap();
        last.reward.reward = i64::from(is_success && keep == 6);
        last.reward.is_blocked = keep == 6 && chance(index + 77) < 0.05;
        trajectory.metadata.outcome = None;
        trajectory
    };
    (0..count).map(simulate).collect()
}
