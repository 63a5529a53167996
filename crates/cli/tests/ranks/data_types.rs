//! PyTorch reads a merged file of two ranks, one of which was killed and resumed, and compares the type of every field with
//! the contract. The file has successful, failed, blocked, unjudged and interrupted episodes.

use std::{collections::BTreeSet, sync::Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::sim_model::{ModelReply, ModelRequest, SimModel};

use crate::{
    harness::{ID, TASKS, TestRun, assert_success},
    python,
};

/// Tasks of each rank that never end.
const HANGING: usize = 2;

/// Python: checks the types of all values in a file, and prints the outcomes.
const CHECK: &str = r#"
import json, os, sys, torch
import webgym.data.components as c

NONE = type(None)
CLASSES = {
    c.Task: dict(task_name=str, domain=str, subdomain=str, website=str, difficulty=int, evaluator_reference=list,
                 reference_answer=(str, NONE), attempt_level=int, task_id=(int, str), max_steps=int,
                 trajectory_index=int),
    c.Observation: dict(task=c.Task, image_path=str, ac_tree=(str, NONE), page_metadata=dict),
    c.Action: dict(action=dict, action_string=str),
    c.Response: dict(raw_response=str, answering_tokens=dict, raw_prompt=str),
    c.Reward: dict(reward=int, evaluation=(str, list), is_blocked=bool, submit=bool, submission_judgment=(str, NONE)),
}
STEP = dict(observation=c.Observation, action=c.Action, response=c.Response, reward=c.Reward,
            same_as_next_screenshot=bool)
ARGUMENTS = dict(coordinates=list, element_id=str, direction=str, url=str, time=(int, float), goback_to=str, text=str,
                 content=str)
METADATA = dict(solution_model=str, judge_model=(str, NONE), judge_model_overrides=(dict, NONE), dataset_file=str,
                split=str, server_size=int, max_steps=dict, timestamp=str, iteration=int, seed=int,
                num_ranks_aggregated=int)

def check(where, values, types):
    assert set(types) <= set(values), (where, sorted(set(types) - set(values)))
    for name, wanted in types.items():
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        assert type(values[name]) in wanted, (where, name, values[name])

def check_object(value):
    check(type(value).__name__, vars(value), CLASSES[type(value)])
    assert set(vars(value)) == set(CLASSES[type(value)]), vars(value).keys()

def check_step(step, is_last, may_lack_response):
    if not (may_lack_response and step["response"] is None):
        check("step", step, STEP)
        response = step["response"]
        check_object(response)
        assert response.raw_response and response.raw_prompt
        assert type(response.answering_tokens["tool_call"]) is dict, response.answering_tokens
        prompt = json.loads(response.raw_prompt)
        images = [part["image_url"]["url"] for message in prompt if type(message["content"]) is list
                  for part in message["content"] if part["type"] == "image_url"]
        assert images and all(os.path.isfile(url.removeprefix("file://")) for url in images), images
    for name in ("observation", "action", "reward"):
        check_object(step[name])
    check_object(step["observation"].task)
    check("page", step["observation"].page_metadata, dict(title=str, url=str))
    action = step["action"].action
    check("action", action, dict(key=str, arguments=dict))
    for name, value in action["arguments"].items():
        check(action["key"], {name: value}, {name: ARGUMENTS[name]})
    assert not is_last or step["same_as_next_screenshot"] is False

file = torch.load(sys.argv[1], **({"weights_only": False} if int(torch.__version__.split(".")[0]) > 1 else {}))
check("metadata", file["metadata"], METADATA)
assert file["metadata"]["num_ranks_aggregated"] == 2
outcomes = {}
for trajectory in file["trajectories"]:
    metadata = trajectory[0]["trajectory_metadata"]
    check("trajectory_metadata", metadata, dict(keypoint_step_ids=list, outcome=str))
    outcome = metadata["outcome"]
    outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for number, step in enumerate(trajectory):
        check_step(step, number + 1 == len(trajectory), outcome in ("cancelled", "infra_lost"))
print(json.dumps(outcomes))
"#;

/// Returns the number of the task that a request is about.
fn number(request: &ModelRequest) -> usize {
    let after = request.text.split("task number ").nth(1).unwrap_or_default();
    after.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Starts a policy that never answers the second request of two tasks.
async fn policy() -> SimModel {
    let hanging = Mutex::new(BTreeSet::new());
    SimModel::start(move |request| {
        let mut hanging = hanging.lock().unwrap();
        if hanging.len() < HANGING {
            hanging.insert(number(request));
        }
        match request.step() {
            1 => ModelReply::click(500, 500),
            _ if hanging.contains(&number(request)) => ModelReply::Never,
            2 => ModelReply::call("computer_use", &json!({"action": "scroll", "direction": "down"})),
            _ => ModelReply::answer("42"),
        }
    })
    .await
}

fn judge(request: &ModelRequest) -> ModelReply {
    let is_blocking = request.text.contains("Blocked: YES");
    let reply = match number(request) % 5 {
        1 if is_blocking => "A captcha.\nStep: 1\nBlocked: YES",
        _ if is_blocking => "Blocked: NO",
        0 | 3 => "YES\nVerdict: SUCCESS",
        4 => "I cannot say.",
        _ => "NO\nVerdict: NOT SUCCESS",
    };
    ModelReply::Reply(reply.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_have_types_of_contract() {
    let torch = python::with_module("torch");
    let mut run = TestRun::new(2).await;
    let (policies, judge) = ([policy().await, policy().await], SimModel::start(judge).await);
    run.more = vec![
        "judge=openai".to_owned(),
        format!("openai_config.base_url={}/v1", judge.url()),
        // All but those that hang.
        format!(
            "env_config.completion_threshold={}",
            (TASKS / 2 - HANGING) as f64 / (TASKS / 2) as f64 - 0.01
        ),
        "env_config.completion_grace_period=0.2".to_owned(),
    ];
    let start = |rank: usize, more: &[&str]| {
        let option = format!("--rank={rank}");
        let more: Vec<&str> = more.iter().copied().chain([option.as_str(), "--num-ranks=2"]).collect();
        run.start_in(rank, &policies[rank], &more, &[("OPENAI_API_KEY", "key")])
    };
    let mut killed = start(1, &[]);
    run.wait_until_collected(1, 3).await;
    killed.signal(Signal::KILL);
    killed.wait_for_exit(crate::harness::LIMIT).await;
    let mut ranks = [start(0, &[]), start(1, &["--resume"])];
    for rank in &mut ranks {
        assert_success(rank).await;
    }
    run.assert_all_merged();
    run.assert_rank_files_removed();
    let printed = python::run(&torch, CHECK, &[&run.save_path().iteration_file(ID)]);
    let outcomes: Value = serde_json::from_str(&printed).unwrap();
    let count = |outcome: &str| outcomes[outcome].as_u64().unwrap_or(0) as usize;
    assert_eq!(count("cancelled"), 2 * HANGING, "{outcomes}");
    for outcome in ["success", "failure", "blocked", "judge_error"] {
        assert!(count(outcome) > 0, "{outcomes}");
    }
}
