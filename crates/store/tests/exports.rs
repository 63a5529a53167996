//! Exports follow the formats that trainers document, and options exclude trajectories and steps.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]

#[path = "support/sample.rs"]
mod sample;

use std::path::Path;

use proto::trajectory::{Outcome, Trajectory};
use serde_json::{Value, json};
use store::durable::Existing;
use store::export::{ExportError, ExportOptions, Format, export};
use store::pt::{PtFile, PtWriter};
use store::{IterationId, RunMetadata, SavePath, Split};

fn write(save_path: &SavePath, id: IterationId, trajectories: impl IntoIterator<Item = Trajectory>) {
    save_path.create_directories(id.split).unwrap();
    let mut writer = PtWriter::create(&save_path.iteration_file(id)).unwrap();
    for trajectory in trajectories {
        writer.push(&trajectory).unwrap();
    }
    writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
}

fn save_path_with(iterations: u64, trajectories: i64) -> (tempfile::TempDir, SavePath) {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path().join("save"));
    for iteration in 0..iterations {
        let id = IterationId::new(Split::Train, iteration);
        write(&save_path, id, (0..trajectories).map(|index| sample::trajectory(index, 4)));
    }
    (directory, save_path)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn lines_of(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks the rules in LLaMA-Factory's documentation; its loader drops examples that break them.
fn check_sharegpt(example: &Value) {
    let keys: Vec<&String> = example.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["conversations", "system", "images"]);
    let turns = example["conversations"].as_array().unwrap();
    assert!(turns.len() >= 2 && turns.len().is_multiple_of(2));
    let mut image_tags = 0;
    for (position, turn) in turns.iter().enumerate() {
        assert_eq!(
            turn["from"],
            ["human", "gpt"][position % 2],
            "human and gpt alternate, starting with human"
        );
        let value = turn["value"].as_str().unwrap();
        image_tags += value.matches("<image>").count();
        assert!(!value.contains("<video>") && !value.contains("<audio>"), "{value}");
    }
    let images = example["images"].as_array().unwrap();
    assert_eq!(image_tags, images.len(), "one tag per image");
    assert!(images.iter().all(|image| Path::new(image.as_str().unwrap()).is_absolute()));
    assert!(example["system"].is_string());
}

#[test]
fn llamafactory_examples_follow_its_documentation() {
    let (directory, save_path) = save_path_with(1, 3);
    let out = directory.path().join("out");
    let report = export(&save_path, Split::Train, &out, &ExportOptions::new(Format::LlamaFactory)).unwrap();
    let examples = json_of(&out.join("webgym_train.json"));
    let examples = examples.as_array().unwrap();
    assert_eq!((examples.len(), report.train_examples), (12, 12));
    examples.iter().for_each(check_sharegpt);
    let third = &examples[2];
    assert_eq!(third["images"].as_array().unwrap().len(), 3, "the history that the model saw");
    assert_eq!(third["system"], "You are a web agent.");
    let turns = third["conversations"].as_array().unwrap();
    assert_eq!(turns[0]["value"], "Task: find &lt;image&gt; &lt;video&gt;<image>");
    assert_eq!(turns[1], json!({"from": "gpt", "value": "reply 0"}));
    assert_eq!(turns[5]["value"], "Action: look\n<tool_call>{\"n\": 2}</tool_call>", "the reply is last");
    assert_eq!(
        json_of(&out.join("dataset_info.json")),
        json!({"webgym_train": {
            "file_name": "webgym_train.json", "formatting": "sharegpt",
            "columns": {"messages": "conversations", "system": "system", "images": "images"},
            "tags": {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt"},
        }})
    );
}

#[test]
fn openai_messages_are_the_prompt_and_the_reply() {
    let (directory, save_path) = save_path_with(1, 1);
    let out = directory.path().join("out");
    export(&save_path, Split::Train, &out, &ExportOptions::new(Format::OpenAiMessages)).unwrap();
    let lines = lines_of(&out.join("train.jsonl"));
    let trajectory = sample::trajectory(0, 4);
    for (line, step) in lines.iter().zip(&trajectory.steps) {
        let mut messages: Value = serde_json::from_str(&step.response.raw_prompt).unwrap();
        let reply = json!({"role": "assistant", "content": step.response.raw_response});
        messages.as_array_mut().unwrap().push(reply);
        assert_eq!(line["messages"], messages);
    }
    assert_eq!(lines.len(), 4);
}

#[test]
fn jsonl_and_pt_contain_complete_trajectories() {
    let (directory, save_path) = save_path_with(2, 3);
    let out = directory.path().join("out");
    for format in [Format::Jsonl, Format::Pt] {
        let report = export(&save_path, Split::Train, &out, &ExportOptions::new(format)).unwrap();
        assert_eq!(report.train_examples, 6);
    }
    let lines = lines_of(&out.join("train.jsonl"));
    assert_eq!((lines.len(), &lines[4]["iteration"]), (6, &json!(1)));
    let first: Trajectory = serde_json::from_value(lines[0].clone()).unwrap();
    assert_eq!(first, sample::trajectory(0, 4));
    let read: Vec<Trajectory> = PtFile::open(&out.join("train.pt"))
        .unwrap()
        .trajectories()
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!((read.len(), &read[5]), (6, &sample::trajectory(2, 4)));
}

#[test]
fn masked_trajectories_have_no_rewards_or_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path().join("save"));
    let mut lost = sample::trajectory(1, 4);
    lost.metadata.outcome = Some(Outcome::InfraLost);
    write(&save_path, IterationId::new(Split::Train, 0), [sample::trajectory(0, 4), lost]);
    let out = directory.path().join("jsonl");
    export(&save_path, Split::Train, &out, &ExportOptions::new(Format::Jsonl)).unwrap();
    let lines = lines_of(&out.join("train.jsonl"));
    let rewards = |line: &Value| -> Vec<Value> {
        line["steps"].as_array().unwrap().iter().map(|step| step["reward"]["reward"].clone()).collect()
    };
    assert!(rewards(&lines[0]).iter().all(Value::is_i64), "{:?}", rewards(&lines[0]));
    assert_eq!(rewards(&lines[1]), vec![Value::Null; 4]);
    let out = directory.path().join("llamafactory");
    let options = ExportOptions::new(Format::LlamaFactory);
    let report = export(&save_path, Split::Train, &out, &options).unwrap();
    assert_eq!((report.trajectories_read, report.trajectories_kept, report.masked_left_out), (2, 1, 1));
    assert_eq!(json_of(&out.join("webgym_train.json")).as_array().unwrap().len(), 4);
    assert!(report.to_string().contains("were left out, because the format cannot mark them"), "{report}");
}

#[test]
fn options_exclude_steps_and_trajectories() {
    let (directory, save_path) = save_path_with(1, 4);
    write(&save_path, IterationId::new(Split::Train, 1), [sample::trajectory(0, 1)]);
    let count = |change: &dyn Fn(&mut ExportOptions)| {
        let mut options = ExportOptions::new(Format::OpenAiMessages);
        options.overwrite = true;
        change(&mut options);
        export(&save_path, Split::Train, &directory.path().join("out"), &options).unwrap().train_examples
    };
    assert_eq!(count(&|_| {}), 17);
    assert_eq!(count(&|options| options.only_successful = true), 9, "half of the tasks succeed");
    assert_eq!(count(&|options| options.min_steps = 2), 16);
    assert_eq!(count(&|options| options.drop_unchanged = true), 13, "step 2 of 4 changed nothing");
    assert_eq!(count(&|options| options.sample = Some(5)), 5);
    assert_eq!(count(&|options| options.iterations = Some(vec![1])), 1);
}

#[test]
fn high_recency_power_samples_the_latest_iteration() {
    let (directory, save_path) = save_path_with(4, 10);
    let mut options = ExportOptions::new(Format::OpenAiMessages);
    (options.sample, options.recency_power, options.seed) = (Some(20), 40.0, 5);
    let out = directory.path().join("out");
    export(&save_path, Split::Train, &out, &options).unwrap();
    let first = lines_of(&out.join("train.jsonl"));
    assert!(first.iter().all(|line| line["metadata"]["iteration"] == 3));
    options.overwrite = true;
    export(&save_path, Split::Train, &out, &options).unwrap();
    assert_eq!(lines_of(&out.join("train.jsonl")), first, "the same seed gives the same sample");
    options.recency_power = 0.0;
    export(&save_path, Split::Train, &out, &options).unwrap();
    let spread = lines_of(&out.join("train.jsonl"));
    assert!(spread.iter().any(|line| line["metadata"]["iteration"] == 0));
}

#[test]
fn validation_tasks_are_not_in_training() {
    let (directory, save_path) = save_path_with(2, 30);
    let mut options = ExportOptions::new(Format::Jsonl);
    options.validation_share = 0.3;
    let out = directory.path().join("out");
    let report = export(&save_path, Split::Train, &out, &options).unwrap();
    assert_eq!(report.train_examples + report.validation_examples, 60);
    let names = |file: &str| -> std::collections::BTreeSet<String> {
        lines_of(&out.join(file)).iter().map(|line| line["task"]["task_name"].to_string()).collect()
    };
    let (train, validation) = (names("train.jsonl"), names("val.jsonl"));
    assert!(!validation.is_empty() && train.is_disjoint(&validation));
    assert_eq!(train.len() + validation.len(), 30);

    options.format = Format::LlamaFactory;
    export(&save_path, Split::Train, &out, &options).unwrap();
    assert_eq!(json_of(&out.join("dataset_info.json"))["webgym_val"]["file_name"], "webgym_val.json");
}

#[test]
fn steps_without_prompt_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    let mut trajectory = sample::trajectory(0, 4);
    trajectory.steps[0].response.raw_prompt.clear();
    trajectory.steps[1].response.raw_prompt = "not json".to_owned();
    write(&save_path, IterationId::new(Split::Train, 0), [trajectory]);
    let out = directory.path().join("out");
    let report = export(&save_path, Split::Train, &out, &ExportOptions::new(Format::LlamaFactory)).unwrap();
    assert_eq!((report.train_examples, report.unusable_steps), (2, 2));
    assert!(report.to_string().contains("2 steps without a usable prompt"), "{report}");
}

#[test]
fn existing_files_and_invalid_options_are_refused() {
    let (directory, save_path) = save_path_with(1, 1);
    let out = directory.path().join("out");
    for format in Format::ALL {
        let options = ExportOptions::new(format);
        export(&save_path, Split::Train, &out.join(format.as_str()), &options).unwrap();
        let repeated = export(&save_path, Split::Train, &out.join(format.as_str()), &options);
        assert!(repeated.is_err(), "{} was overwritten", format.as_str());
        assert_eq!(format.as_str().parse::<Format>(), Ok(format));
    }
    let assert_refused = |change: &dyn Fn(&mut ExportOptions)| {
        let mut options = ExportOptions::new(Format::Pt);
        change(&mut options);
        let result = export(&save_path, Split::Train, &directory.path().join("new"), &options);
        assert!(matches!(result, Err(ExportError::Options(_))), "{result:?}");
    };
    assert_refused(&|options| options.sample = Some(3));
    assert_refused(&|options| options.inline_screenshots = true);
    assert_refused(&|options| options.validation_share = 1.5);
    assert_refused(&|options| options.recency_power = f64::NAN);
    assert_refused(&|options| options.iterations = Some(vec![7]));
    let without_iterations = export(&save_path, Split::Test, &out, &ExportOptions::new(Format::Pt));
    assert!(matches!(without_iterations, Err(ExportError::NoIterations { .. })));
    assert!("sharegpt".parse::<Format>().unwrap_err().contains("llamafactory"));
}
