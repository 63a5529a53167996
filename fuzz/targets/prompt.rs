//! Page text in a prompt: it cannot imitate the tokens of the chat template, our tags or our own lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::{InteractionMode, trajectory::Observation};
use client::chat::{Part, Role};
use rollout::{config::{ModelType, PromptVersion}, policy::{PromptOptions, build_conversation}, plan::tasks::parse_line};

const TASK: &[u8] = br#"{"task_name":"find it","website":"https://start.example","domain":"d","subdomain":"s","difficulty":1,"evaluator_reference":["seen"]}"#;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let task = parse_line(TASK).expect("a task");
    let observation = Observation {
        image_path: String::new(),
        ac_tree: Some(text.clone()),
        title: text.clone(),
        url: text.clone(),
    };
    let options = PromptOptions {
        mode: InteractionMode::SetOfMarks,
        model_type: ModelType::Think,
        version: PromptVersion::Complete,
        include_ac_tree: true,
    };
    for message in build_conversation(options, &task, &[], &observation, Some(&text)) {
        if message.role == Role::System {
            continue;
        }
        let text: String = message.content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Image(_) => None,
        }).collect();
        for marker in ["<|", "<tool_call", "</tool_call", "<think", "</think"] {
            assert!(!text.to_ascii_lowercase().contains(marker), "{marker} in {text}");
        }
        let outside_fences: String = text.split("```").step_by(2).collect();
        assert_eq!(outside_fences.lines().filter(|line| line.starts_with("Task: ")).count(), 1, "{text}");
        assert_eq!(outside_fences.lines().filter(|line| line.starts_with("Step ")).count(), 1, "{text}");
    }
});
