//! PyTorch reads our files and we read PyTorch's files, compared field by field.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure in a test should panic")]

#[path = "support/python.rs"]
mod python;
#[path = "support/sample.rs"]
mod sample;

use std::path::Path;

use proto::trajectory::{Evaluation, Outcome, Response, StepExtras, Trajectory};
use serde_json::{Value, json};
use store::aggregate::{AggregateOptions, aggregate};
use store::durable::Existing;
use store::pt::{PtFile, PtWriter};
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath, Split};

/// Python: prints the content of a file as JSON, objects with their class and all attributes.
const DUMP: &str = r#"
import json, sys, torch
import webgym.data.components as c

def plain(v):
    if type(v) in (c.Task, c.Observation, c.Action, c.Response, c.Reward):
        return {"class": type(v).__name__, "attributes": {k: plain(x) for k, x in vars(v).items()}}
    if type(v) is dict:
        assert all(type(k) is str for k in v)
        return {k: plain(x) for k, x in v.items()}
    if type(v) is list:
        return [plain(x) for x in v]
    assert v is None or type(v) in (bool, int, float, str), type(v)
    return v

loaded = torch.load(sys.argv[1], **({"weights_only": False} if int(torch.__version__.split(".")[0]) > 1 else {}))
assert list(loaded) == ["trajectories", "metadata"]
for t in loaded["trajectories"]:
    assert all(step["observation"].task is t[0]["observation"].task for step in t), "tasks are not shared"
print(json.dumps(plain(loaded)))
"#;

/// Python: builds the same objects from their dump and saves them in every format that PyTorch supports.
const SAVE: &str = r#"
import json, os, sys, zipfile, pickle, torch
import webgym.data.components as c

tasks = {}
def build(v):
    if isinstance(v, dict) and set(v) == {"class", "attributes"}:
        if v["class"] == "Task":
            index = v["attributes"]["trajectory_index"]
            if index in tasks:
                return tasks[index]
        o = getattr(c, v["class"])()
        o.__dict__.update({k: build(x) for k, x in v["attributes"].items()})
        if v["class"] == "Task":
            tasks[index] = o
        return o
    if isinstance(v, dict):
        return {k: build(x) for k, x in v.items()}
    if isinstance(v, list):
        return [build(x) for x in v]
    return v

content = build(json.load(open(sys.argv[1])))
out = sys.argv[2]
for protocol in (2, 3, 4, 5):
    torch.save(content, f"{out}/zip{protocol}.pt", pickle_protocol=protocol)
    with open(f"{out}/buffer{protocol}", "wb") as f:
        torch.save(content, f, pickle_protocol=protocol)
    torch.save(content, f"{out}/legacy{protocol}", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    with open(f"{out}/bare{protocol}", "wb") as f:
        pickle.dump(content, f, protocol=protocol)
source = zipfile.ZipFile(f"{out}/zip2.pt")
with zipfile.ZipFile(f"{out}/deflated", "w", zipfile.ZIP_DEFLATED) as packed:
    for name in source.namelist():
        packed.writestr(name, source.read(name))
print(sorted(os.listdir(out)))
"#;

fn rich_trajectories() -> Vec<Trajectory> {
    let mut trajectories: Vec<Trajectory> =
        (0..300).map(|index| sample::trajectory(index, 1 + index as usize % 5)).collect();
    let first = &mut trajectories[0];
    first.metadata.outcome = Some(Outcome::JudgeError);
    first.steps[0].action.as_mut().unwrap().arguments = sample::object(json!({
        "ints": [0, -1, 255, 256, 65535, 65536, 2_147_483_647, 2_147_483_648_i64, -2_147_483_649_i64,
                 i64::MIN, i64::MAX, u64::MAX],
        "floats": [0.1, -0.0, 1e300, 5e-324, 123_456_789.123_456_78],
        "words": ["", "\u{0}", "line\nfeed", "\u{10ffff}", "日本語", "\"'\\"],
        "nested": {"b": {"a": [[], {}, [null, true, false]]}, "a": 1},
    }));
    first.steps[0].reward.evaluation = Evaluation::Texts(vec![]);
    let second = &mut trajectories[1];
    second.steps[0].action = None;
    second.steps[0].extras = StepExtras {
        prompt_token_ids: Some(vec![0, 151_643, u32::MAX]),
        token_ids: Some(vec![]),
        logprobs: Some(vec![-0.25, -1e-7, 0.0]),
        finish_reason: Some("length".to_owned()),
        policy_version: Some("step 7".to_owned()),
        timings_ms: sample::object(json!({"policy": 812.5, "execute": 3})),
    };
    second.task.extra = sample::object(json!({"source": "own", "tags": ["x"]}));
    trajectories[2].task.evaluator_reference.clear();
    let interrupted = trajectories[4].steps.last_mut().unwrap();
    interrupted.response = Response::default();
    trajectories
}

fn metadata() -> RunMetadata {
    RunMetadata {
        solution_model: Some("model/é".to_owned()),
        judge_model: None,
        judge_model_overrides: json!({"evaluation": "big"}),
        dataset_file: Some("tasks.jsonl".to_owned()),
        split: Some("train".to_owned()),
        server_size: Some(64),
        max_steps: json!({"easy": 10, "medium": 20, "hard": 30}),
        timestamp: Some("2026-01-02T03:04:05Z".to_owned()),
        iteration: Some(0),
        seed: Some(u64::MAX),
        extra: serde_json::Map::new(),
    }
}

fn object(class: &str, attributes: &Value) -> Value {
    json!({"class": class, "attributes": attributes})
}

/// The Python objects that a trajectory should become, written from `docs/contract.md` ("Trajectories on disk") and
/// independent of the writer.
fn expected_trajectory(trajectory: &Trajectory) -> Value {
    let task = &trajectory.task;
    let task = object(
        "Task",
        &json!({
            "task_name": task.task_name, "domain": task.domain, "subdomain": task.subdomain, "website": task.website,
            "difficulty": task.difficulty, "evaluator_reference": task.evaluator_reference,
            "reference_answer": task.reference_answer, "attempt_level": task.attempt_level, "task_id": task.task_id,
            "max_steps": task.max_steps, "trajectory_index": task.trajectory_index,
        }),
    );
    let steps = trajectory.steps.iter().enumerate().map(|(number, step)| {
        let (observation, response, reward) = (&step.observation, &step.response, &step.reward);
        let mut dict = json!({
            "observation": object("Observation", &json!({"task": task, "image_path": observation.image_path,
                "ac_tree": observation.ac_tree, "page_metadata": {"title": observation.title, "url": observation.url}})),
            "action": step.action.as_ref().map(|action| object("Action", &json!({
                "action": {"key": action.key, "arguments": action.arguments},
                "action_string": action.action_string}))),
            "response": (*response != Response::default()).then(|| object("Response", &json!({
                "raw_response": response.raw_response, "answering_tokens": response.answering_tokens,
                "raw_prompt": response.raw_prompt}))),
            "reward": object("Reward", &json!({"reward": reward.reward, "evaluation": reward.evaluation,
                "is_blocked": reward.is_blocked, "submit": reward.submit,
                "submission_judgment": reward.submission_judgment})),
            "same_as_next_screenshot": step.same_as_next_screenshot == Some(true),
        });
        if number == 0 {
            let mut metadata = json!({"keypoint_step_ids": trajectory.metadata.keypoint_step_ids,
                "outcome": trajectory.metadata.outcome});
            if !trajectory.task.extra.is_empty() {
                metadata["task_extra"] = trajectory.task.extra.clone().into();
            }
            if trajectory.steps.iter().any(|step| step.extras != StepExtras::default()) {
                metadata["step_extras"] = trajectory.steps.iter().map(|step| json!(step.extras)).collect();
            }
            dict["trajectory_metadata"] = metadata;
        }
        dict
    });
    steps.collect()
}

fn expected_file(trajectories: &[Trajectory]) -> Value {
    json!({"trajectories": trajectories.iter().map(expected_trajectory).collect::<Vec<_>>(), "metadata": metadata()})
}

fn assert_same(found: &Value, expected: &Value) {
    // As text, the comparison includes the order of keys and distinguishes integers from floats.
    assert_eq!(found.to_string(), expected.to_string());
}

fn read_all(path: &Path) -> (Vec<Trajectory>, RunMetadata) {
    let file = PtFile::open(path).unwrap();
    let mut reader = file.trajectories().unwrap();
    let trajectories = reader.by_ref().collect::<Result<_, _>>().unwrap();
    let metadata = reader.metadata().unwrap();
    (trajectories, metadata)
}

#[test]
fn torch_and_our_reader_load_our_files() {
    let torch = python::with_module("torch");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train_trajectories.pt.iteration0");
    let trajectories = rich_trajectories();
    let mut writer = PtWriter::create(&path).unwrap();
    for trajectory in &trajectories {
        writer.push(trajectory).unwrap();
    }
    writer.finish(&metadata(), Existing::Refuse).unwrap();

    let loaded: Value = serde_json::from_str(&python::run(&torch, DUMP, &[&path])).unwrap();
    assert_same(&loaded, &expected_file(&trajectories));
    let (read, read_metadata) = read_all(&path);
    assert_eq!(read, trajectories);
    assert_eq!(read_metadata, metadata());
    let file = PtFile::open(&path).unwrap();
    for position in [0, 1, 150, 299] {
        assert_eq!(file.read(position).unwrap(), trajectories[position], "read by position");
    }
}

#[test]
fn torch_loads_a_file_written_from_a_journal() {
    let torch = python::with_module("torch");
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    save_path.create_directories(Split::Train).unwrap();
    let id = IterationId::new(Split::Train, 0);
    let mut trajectories = rich_trajectories();
    let run = RunRecord {
        split: id.split,
        iteration: id.iteration,
        rank: None,
        seed: 1,
        config_digest: String::new(),
        tasks: trajectories.len() as u64,
        metadata: metadata(),
    };
    let journal = Journal::create(&save_path.journal(id), &run).unwrap();
    for trajectory in trajectories.iter().rev() {
        journal.append_finished_blocking(trajectory).unwrap();
    }
    trajectories[5].steps[0].reward.reward = 1;
    journal.append_finished_blocking(&trajectories[5]).unwrap();
    journal.close_blocking().unwrap();

    let path = save_path.iteration_file(id);
    let count = store::pt::write_from_journal(&save_path.journal(id), &path, Existing::Refuse).unwrap();
    assert_eq!(count, trajectories.len());
    let loaded: Value = serde_json::from_str(&python::run(&torch, DUMP, &[&path])).unwrap();
    assert_same(&loaded, &expected_file(&trajectories));
}

#[test]
fn files_saved_by_torch_are_read_back() {
    let torch = python::with_module("torch");
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let trajectories = rich_trajectories();
    let dump = directory.path().join("dump.json");
    std::fs::write(&dump, expected_file(&trajectories).to_string()).unwrap();
    python::run(&torch, SAVE, &[&dump, &out]);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let (read, read_metadata) = read_all(&path);
        assert_eq!(read.len(), trajectories.len(), "{}", path.display());
        for (found, expected) in read.iter().zip(&trajectories) {
            assert_eq!(found, expected, "{}", path.display());
        }
        assert_eq!(read_metadata, metadata(), "{}", path.display());
        names.push(path);
    }
    assert_eq!(names.len(), 17);

    // A file of the Python system is merged as a rank of an iteration.
    let save_path = SavePath::new(directory.path().join("save"));
    save_path.create_directories(Split::Test).unwrap();
    let rank = IterationId::new(Split::Test, 0).with_rank(Some(0));
    std::fs::copy(out.join("zip4.pt"), save_path.iteration_file(rank)).unwrap();
    let report = aggregate(&save_path, Split::Test, 0, &AggregateOptions::default()).unwrap();
    assert_eq!((report.trajectories, report.missing_indices.len()), (300, 0));
    let mut merged = metadata();
    merged.extra = sample::object(json!({"num_ranks_aggregated": 1, "merged_ranks": [0]}));
    assert_eq!(read_all(&report.path), (trajectories, merged));
    assert_eq!(
        std::fs::read_dir(save_path.split_directory(Split::Test)).unwrap().count(),
        1,
        "neither the file of the rank nor a temporary file is left"
    );
}

/// Python: saves a small file under names of every length, and under the names that the Python system uses.
const SAVE_NAMES: &str = r#"
import json, sys, torch
names = ["x" * length for length in range(1, 61)]
for split in ("train", "test"):
    for suffix in ("0", "9", "10", "123", "0_rank_0", "12_rank_3"):
        names.append(f"{split}_trajectories.pt.iteration{suffix}")
for name in names:
    torch.save({"trajectories": [], "metadata": {"iteration": len(name)}}, f"{sys.argv[1]}/{name}")
print(len(names))
"#;

/// PyTorch names the entries of its archive after the file, and the archive's reader depends on their length.
#[test]
fn torch_file_is_read_under_any_name() {
    let torch = python::with_module("torch");
    let directory = tempfile::tempdir().unwrap();
    let count = python::run(&torch, SAVE_NAMES, &[directory.path()]);
    let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(names.len().to_string(), count.trim());
    for entry in names {
        let (trajectories, metadata) = read_all(&entry.path());
        assert!(trajectories.is_empty());
        assert_eq!(
            metadata.iteration,
            i64::try_from(entry.file_name().len()).ok(),
            "{}",
            entry.path().display()
        );
    }
}

/// Python: saves files with missing and unusual values, as older versions may have written them.
const SAVE_UNUSUAL: &str = r#"
import sys, collections, torch
import webgym.data.components as c

def make(cls, **attributes):
    o = cls()
    o.__dict__.update(attributes)
    return o

task = make(c.Task, task_name="t", website="w", difficulty=2.0, evaluator_reference="one thing", task_id=7)
steps = ({
    "observation": make(c.Observation, task=task, image_path="a.png", page_metadata=None),
    "action": make(c.Action, action={"key": "wait", "arguments": None}, action_string=None),
    "response": make(c.Response, raw_response="r \ud83d", answering_tokens=None),
    "reward": make(c.Reward, reward=True, evaluation=None, is_blocked=None, submit=1),
}, {
    "observation": make(c.Observation, task=task, image_path=None, ac_tree="tree"),
    "action": make(c.Action, action=None),
    "response": None,
    "reward": make(c.Reward, reward=1.0, evaluation=["x", {"score": 3}], submission_judgment="YES"),
    "note": {1, 2}, "raw": b"\x00\xff",
})
content = collections.OrderedDict(metadata={"seed": None, "custom": (1, 2)}, trajectories=[steps, []])
for protocol in (2, 4):
    torch.save(content, f"{sys.argv[1]}/unusual{protocol}", pickle_protocol=protocol)
"#;

#[test]
fn missing_values_are_read_as_defaults() {
    let torch = python::with_module("torch");
    let directory = tempfile::tempdir().unwrap();
    python::run(&torch, SAVE_UNUSUAL, &[directory.path()]);
    for protocol in [2, 4] {
        let (read, metadata) = read_all(&directory.path().join(format!("unusual{protocol}")));
        assert_eq!(read.len(), 2);
        let task = &read[0].task;
        assert_eq!((task.task_name.as_str(), task.difficulty, task.trajectory_index), ("t", 2, 0));
        assert_eq!(task.evaluator_reference[0].description, "one thing");
        let [first, second] = &read[0].steps[..] else { panic!("{read:?}") };
        assert_eq!(first.action.as_ref().unwrap().key, "wait");
        assert!(first.response.raw_response.starts_with("r "));
        assert_eq!((first.reward.reward, first.reward.submit, first.reward.is_blocked), (1, true, false));
        assert_eq!((&second.action, second.reward.reward), (&None, 1));
        assert_eq!(second.reward.evaluation, Evaluation::Texts(vec!["x".into(), "{\"score\":3}".into()]));
        assert!(read[1].steps.is_empty());
        assert_eq!(metadata.extra["custom"], json!([1, 2]));
    }
}
