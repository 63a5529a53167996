//! pyarrow and DuckDB read our Parquet files.

#![allow(clippy::unwrap_used, reason = "a failure in a test should panic")]
#![recursion_limit = "256"]

#[path = "support/python.rs"]
mod python;
#[path = "support/sample.rs"]
mod sample;

use std::path::Path;

use proto::network::{MatchCounts, NetworkSummary};
use proto::trajectory::{Evaluation, Outcome, StepExtras, Trajectory, TrajectoryMetadata};
use serde_json::{Value, json};
use store::columnar::{SCHEMA_VERSION, documented_columns};
use store::durable::Existing;
use store::export::{Advantage, ExportOptions, Format, export};
use store::pt::PtWriter;
use store::{IterationId, RunMetadata, SavePath, Split};

const ARROW: &str = r#"
import json, sys
import pyarrow.dataset as ds, pyarrow.parquet as pq
dataset = ds.dataset(sys.argv[1], format="parquet")
table = dataset.to_table().sort_by([("iteration", "ascending"), ("trajectory_index", "ascending"), ("step", "ascending")])
rows = table.to_pylist()
for row in rows:
    if row["screenshot"] is not None:
        row["screenshot"] = row["screenshot"].hex()
metadata = {k.decode(): v.decode() for k, v in pq.read_schema(dataset.files[0]).metadata.items()}
types = {f.name: str(f.type) for f in dataset.schema}
print(json.dumps({"rows": rows, "metadata": metadata, "types": types, "files": sorted(dataset.files)}))
"#;

const DUCK: &str = r#"
import json, sys, duckdb
source = f"'{sys.argv[1]}/**/*.parquet'"
rows = duckdb.sql(f"""
  select iteration, count(*), count(distinct trajectory_index), sum(reward), sum(len(token_ids)), count(token_ids),
         sum(len(evaluation)) from {source} where split = 'train' group by iteration order by iteration""").fetchall()
print(json.dumps([[int(x) if x is not None else None for x in row] for row in rows]))
"#;

const VERL: &str = r#"
import json, sys, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
print(json.dumps({"rows": table.to_pylist(), "types": {f.name: str(f.type) for f in table.schema}}))
"#;

/// Python: the libraries that open the folder without options, each with the counts per split and iteration.
const OTHERS: &str = r#"
import collections, json, os, sys
os.environ.update(HF_HUB_OFFLINE="1", HF_HOME=sys.argv[2])
import datasets, pandas
datasets.disable_progress_bars()
frames = [pandas.read_parquet(sys.argv[1]), datasets.load_dataset(sys.argv[1], split="train").to_pandas()]
print(json.dumps([[[split, int(iteration), count] for (split, iteration), count in sorted(collections.Counter(
    zip(frame["split"], frame["iteration"])).items())] for frame in frames]))
"#;

fn trajectories(iteration: u64) -> Vec<Trajectory> {
    let mut list: Vec<Trajectory> =
        (0..5).map(|index| sample::trajectory(index, 2 + iteration as usize)).collect();
    list[1].task.extra = sample::object(json!({"note": "kept"}));
    list[1].metadata.group_id = Some("train-0-0".to_owned());
    list[1].metadata.forked_at_step = Some(2);
    list[2].metadata.outcome = Some(Outcome::JudgeError);
    list[2].steps[0].action = None;
    list[2].steps[1].reward.evaluation = Evaluation::Text("one".to_owned());
    let matches = MatchCounts { exact: 3, missed: 1, ..MatchCounts::default() };
    list[3].metadata.network = Some(NetworkSummary { matches, ..NetworkSummary::default() });
    list[3].steps[0].extras = StepExtras {
        prompt_token_ids: Some(vec![]),
        token_ids: Some(vec![1, 2, u32::MAX]),
        logprobs: Some(vec![-0.5, -0.25, 0.0]),
        finish_reason: Some("length".to_owned()),
        policy_version: Some("step 7".to_owned()),
        timings_ms: sample::object(json!({"policy": 1.5})),
    };
    list
}

fn write_iterations(directory: &Path) -> SavePath {
    let save_path = SavePath::new(directory);
    save_path.create_directories(Split::Train).unwrap();
    for iteration in 0..2 {
        let id = IterationId::new(Split::Train, iteration);
        let mut writer = PtWriter::create(&save_path.iteration_file(id)).unwrap();
        for trajectory in trajectories(iteration) {
            writer.push(&trajectory).unwrap();
        }
        writer.finish(&RunMetadata::default(), Existing::Refuse).unwrap();
    }
    let image = save_path.root().join("images/task_0000_ab/step_000.png");
    std::fs::create_dir_all(image.parent().unwrap()).unwrap();
    std::fs::write(image, b"abc").unwrap();
    save_path
}

#[test]
fn pyarrow_reads_every_field_of_every_step() {
    let arrow = python::with_module("pyarrow");
    let directory = tempfile::tempdir().unwrap();
    let save_path = write_iterations(directory.path());
    let out = directory.path().join("dataset");
    let mut options = ExportOptions::new(Format::Parquet);
    options.inline_screenshots = true;
    let report = export(&save_path, Split::Train, &out, &options).unwrap();
    assert_eq!((report.trajectories_read, report.train_examples), (10, 25));

    let found: Value = serde_json::from_str(&python::run(&arrow, ARROW, &[&out])).unwrap();
    assert_eq!(found["metadata"]["webgym.schema_version"], SCHEMA_VERSION.to_string());
    let files: Vec<&str> =
        found["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert!(files[1].ends_with("train/iteration-1-part-0.parquet"), "{files:?}");
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 25);
    let mut rows = rows.iter();
    for iteration in 0..2 {
        for trajectory in trajectories(iteration) {
            for number in 0..trajectory.steps.len() {
                let mut row = rows.next().unwrap().clone();
                assert_eq!(row["split"], "train");
                assert_eq!(row["iteration"], iteration);
                row.as_object_mut().unwrap().retain(|name, _| name != "split" && name != "iteration");
                assert_eq!(
                    row,
                    expected(&trajectory, number),
                    "trajectory {} step {number}",
                    trajectory.task.trajectory_index
                );
            }
        }
    }
}

fn expected(trajectory: &Trajectory, number: usize) -> Value {
    let (task, step) = (&trajectory.task, &trajectory.steps[number]);
    let text = |value: Value| Value::String(value.to_string());
    let map =
        |map: &serde_json::Map<String, Value>| if map.is_empty() { Value::Null } else { text(json!(map)) };
    let has_image = step.observation.image_path == "images/task_0000_ab/step_000.png";
    let action = step.action.as_ref();
    let id = match &task.task_id {
        None => Value::Null,
        Some(id) => Value::String(json!(id).as_str().map_or_else(|| json!(id).to_string(), str::to_owned)),
    };
    let evaluation = match &step.reward.evaluation {
        Evaluation::Text(text) if text.is_empty() => json!([]),
        Evaluation::Text(text) => json!([text]),
        Evaluation::Texts(texts) => json!(texts),
    };
    let (count, TrajectoryMetadata { network, forked_at_step, .. }) =
        (trajectory.steps.len(), &trajectory.metadata);
    let extra = match (network, forked_at_step) {
        (Some(network), _) => Some(text(json!({"network": network}))),
        (None, Some(step)) => Some(text(json!({"forked_at_step": step}))),
        (None, None) => None,
    };
    let is_masked = trajectory.metadata.outcome == Some(Outcome::JudgeError);
    json!({
        "trajectory_index": task.trajectory_index, "step": number, "steps": count, "is_last": number + 1 == count,
        "task_id": id, "task_name": task.task_name, "website": task.website, "domain": task.domain,
        "subdomain": task.subdomain, "difficulty": task.difficulty, "max_steps": task.max_steps,
        "attempt_level": task.attempt_level, "reference_answer": task.reference_answer,
        "evaluator_reference": text(json!(task.evaluator_reference)), "task_extra": map(&task.extra),
        "outcome": trajectory.metadata.outcome, "is_masked": is_masked,
        "trajectory_reward": (!is_masked).then_some(trajectory.steps[count - 1].reward.reward),
        "group_id": trajectory.metadata.group_id, "advantage": null,
        "trajectory_extra": extra,
        "reward": (!is_masked).then_some(step.reward.reward), "is_blocked": step.reward.is_blocked,
        "submit": step.reward.submit, "submission_judgment": step.reward.submission_judgment,
        "evaluation": evaluation,
        "is_keypoint": trajectory.metadata.keypoint_step_ids.contains(&i64::try_from(number).unwrap()),
        "screenshot_path": step.observation.image_path,
        "screenshot_sha256":
            has_image.then_some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        "screenshot": has_image.then_some("616263"),
        "same_as_next_screenshot": step.same_as_next_screenshot, "url": step.observation.url,
        "title": step.observation.title, "ac_tree": step.observation.ac_tree,
        "action_key": action.map(|action| &action.key),
        "action_arguments": action.map(|action| text(json!(action.arguments))),
        "action_string": action.map(|action| &action.action_string),
        "raw_prompt": step.response.raw_prompt, "raw_response": step.response.raw_response,
        "answering_tokens": map(&step.response.answering_tokens),
        "prompt_token_ids": step.extras.prompt_token_ids, "token_ids": step.extras.token_ids,
        "logprobs": step.extras.logprobs, "finish_reason": step.extras.finish_reason,
        "policy_version": step.extras.policy_version, "timings_ms": map(&step.extras.timings_ms),
        "schema_version": SCHEMA_VERSION,
    })
}

#[test]
fn duckdb_queries_the_partitions() {
    let duck = python::with_module("duckdb");
    let directory = tempfile::tempdir().unwrap();
    let save_path = write_iterations(directory.path());
    let out = directory.path().join("dataset");
    export(&save_path, Split::Train, &out, &ExportOptions::new(Format::Parquet)).unwrap();
    let found: Value = serde_json::from_str(&python::run(&duck, DUCK, &[&out])).unwrap();
    // Per iteration: five trajectories of two (then three) steps, three successes, one of which counts for nothing because it is
    // masked, one step with token ids, and two evaluations per verdict.
    assert_eq!(found, json!([[0, 10, 5, 2, 3, 1, 9], [1, 15, 5, 2, 3, 1, 11]]));
}

#[test]
fn pandas_and_datasets_open_the_folder() {
    let python = python::with_module("datasets");
    let directory = tempfile::tempdir().unwrap();
    let save_path = write_iterations(directory.path());
    let out = directory.path().join("dataset");
    export(&save_path, Split::Train, &out, &ExportOptions::new(Format::Parquet)).unwrap();
    let found: Value =
        serde_json::from_str(&python::run(&python, OTHERS, &[&out, &directory.path().join("cache")]))
            .unwrap();
    let counts = json!([["train", 0, 10], ["train", 1, 15]]);
    assert_eq!(found, json!([counts, counts]));
}

/// A trajectory without a verdict has no reward and no advantage, and does not count in the advantages of the others.
#[test]
fn masked_trajectories_are_marked_and_others_have_advantages() {
    let arrow = python::with_module("pyarrow");
    let directory = tempfile::tempdir().unwrap();
    let save_path = write_iterations(directory.path());
    let out = directory.path().join("verl");
    let mut options = ExportOptions::new(Format::Verl);
    options.last = Some(1);
    options.advantage = Some(Advantage::ReinforceBaseline);
    let report = export(&save_path, Split::Train, &out, &options).unwrap();
    assert_eq!((report.trajectories_read, report.masked_trajectories), (5, 1));
    let found: Value =
        serde_json::from_str(&python::run(&arrow, VERL, &[&out.join("train.parquet")])).unwrap();
    let scored: Vec<i64> = trajectories(1)
        .iter()
        .filter(|one| one.metadata.outcome != Some(Outcome::JudgeError))
        .map(|one| one.steps.last().unwrap().reward.reward)
        .collect();
    let mean = scored.iter().sum::<i64>() as f64 / scored.len() as f64;
    for row in found["rows"].as_array().unwrap() {
        let info = &row["extra_info"];
        assert_eq!(info["iteration"], 1, "only the latest");
        if info["trajectory_index"] == 2 {
            assert_eq!((&info["reward"], &info["advantage"]), (&Value::Null, &Value::Null));
            assert_eq!(info["is_masked"], true);
        } else {
            let expected = info["reward"].as_f64().unwrap() - mean;
            assert!((info["advantage"].as_f64().unwrap() - expected).abs() < 1e-9, "{info}");
        }
        let group = if info["trajectory_index"] == 1 { json!("train-0-0") } else { Value::Null };
        assert_eq!(info["group_id"], group);
        let forked_at_step = if info["trajectory_index"] == 1 { json!(2) } else { Value::Null };
        assert_eq!(info["forked_at_step"], forked_at_step);
    }
}

#[test]
fn verl_files_have_the_expected_columns() {
    let arrow = python::with_module("pyarrow");
    let directory = tempfile::tempdir().unwrap();
    let save_path = write_iterations(directory.path());
    let out = directory.path().join("verl");
    let mut options = ExportOptions::new(Format::Verl);
    options.iterations = Some(vec![1]);
    options.only_successful = true;
    let report = export(&save_path, Split::Train, &out, &options).unwrap();
    let found: Value =
        serde_json::from_str(&python::run(&arrow, VERL, &[&out.join("train.parquet")])).unwrap();
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len() as u64, report.train_examples);
    assert_eq!(
        found["types"]["prompt"],
        "list<element: struct<role: string not null, content: string not null> not null>"
    );
    assert_eq!(found["types"]["images"], "list<element: struct<image: string not null> not null>");
    let row = &rows[1];
    assert_eq!(row["data_source"], "webgym/train");
    assert_eq!(row["reward_model"], json!({"style": "rule", "ground_truth": "0.99 €"}));
    assert_eq!(row["extra_info"]["step"], 1);
    assert_eq!(row["extra_info"]["reward"], 1);
    assert_eq!(row["extra_info"]["is_masked"], false);
    let image_tags: usize = row["prompt"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap().matches("<image>").count())
        .sum();
    assert_eq!(image_tags, row["images"].as_array().unwrap().len());
    assert_eq!(image_tags, 2);
    let prompt = row["prompt"].as_array().unwrap();
    let messages = row["messages"].as_array().unwrap();
    assert_eq!(&messages[..prompt.len()], &prompt[..]);
    assert_eq!(
        messages[prompt.len()],
        json!({"role": "assistant", "content": row["extra_info"]["response"]})
    );
}

#[test]
fn columns_are_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let text = std::fs::read_to_string(&path).unwrap();
    for (name, kind) in documented_columns() {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/formats.md does not describe the column {name}"));
        assert!(row.contains(&format!("| {kind} |")), "docs/formats.md has another type for {name}: {row}");
    }
    assert!(text.contains(&format!("`webgym.schema_version` = `{SCHEMA_VERSION}`")));
}
