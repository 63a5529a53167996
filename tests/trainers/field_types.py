"""The types of every field of a .pt file, by the table of the contract (docs/contract.md), as PyTorch reads them."""

from harness import check

TEXT, OPTIONAL_TEXT = (str,), (str, type(None))
FIELDS = {
    "Task": {
        "task_name": TEXT,
        "domain": TEXT,
        "subdomain": TEXT,
        "website": TEXT,
        "difficulty": (int,),
        "evaluator_reference": (list,),
        "reference_answer": OPTIONAL_TEXT,
        "attempt_level": (int,),
        "task_id": (str, int, type(None)),
        "max_steps": (int,),
        "trajectory_index": (int,),
    },
    "Observation": {"task": (object,), "image_path": TEXT, "ac_tree": OPTIONAL_TEXT, "page_metadata": (dict,)},
    "Action": {"action": (dict,), "action_string": TEXT},
    "Response": {"raw_response": TEXT, "answering_tokens": (dict,), "raw_prompt": TEXT},
    "Reward": {
        "reward": (int,),
        "evaluation": (str, list),
        "is_blocked": (bool,),
        "submit": (bool,),
        "submission_judgment": OPTIONAL_TEXT,
    },
}
METADATA = {
    "solution_model": TEXT,
    "judge_model": OPTIONAL_TEXT,
    "judge_model_overrides": (dict, type(None)),
    "dataset_file": TEXT,
    "split": TEXT,
    "server_size": (int,),
    "max_steps": (dict, int),
    "timestamp": TEXT,
    "iteration": (int,),
    "seed": (int,),
}
# Arguments of an action in its two modes. The original's names; ours alone would not be found by its viewer.
ARGUMENTS = {
    "click": [{"coordinates"}, {"element_id"}],
    "type": [{"coordinates", "text"}, {"element_id", "content"}],
    "answer": [{"content"}],
    "scroll": [{"direction"}],
    "goback": [{"goback_to"}],
    "navigate": [{"url"}],
    "wait": [{"time"}],
}


def check_types(file: dict, where: str) -> None:
    check_values(file["metadata"], METADATA, f"{where}: metadata")
    for number, trajectory in enumerate(file["trajectories"]):
        tasks = {id(step["observation"].task) for step in trajectory}
        check(len(tasks) == 1, f"{where}: the steps of trajectory {number} have {len(tasks)} tasks")
        for index, step in enumerate(trajectory):
            check_step(step, f"{where}: trajectory {number}, step {index}")
        check(
            trajectory[-1]["same_as_next_screenshot"] is False,
            f"{where}: trajectory {number} ends with an unchanged page",
        )


def check_step(step: dict, where: str) -> None:
    check(type(step["same_as_next_screenshot"]) is bool, f"{where}: {step['same_as_next_screenshot']=}")
    response, action = step["response"], step["action"]
    for part in [step["observation"].task, step["observation"], action, step["reward"], response]:
        if part is not None:
            check_values(vars(part), FIELDS[type(part).__name__], f"{where}: {type(part).__name__}")
    if response is None:
        return
    check(response.raw_prompt and response.raw_response, f"{where}: the prompt or the response is empty")
    check(type(response.answering_tokens["tool_call"]) is dict, f"{where}: {response.answering_tokens=}")
    sentence = response.answering_tokens["action"]
    check(action.action_string == sentence, f"{where}: action_string is {action.action_string!r}, not {sentence!r}")
    key, arguments = action.action["key"], set(action.action["arguments"])
    check(arguments in ARGUMENTS.get(key, [arguments]), f"{where}: {key} has the arguments {sorted(arguments)}")


def check_values(values: dict, types: dict, where: str) -> None:
    check(set(types) <= set(values), f"{where} lacks {sorted(set(types) - set(values))}")
    for name, allowed in types.items():
        value = values[name]
        # bool is an int in Python, but not here.
        fits = isinstance(value, allowed) and (type(value) is not bool or bool in allowed or object in allowed)
        check(fits, f"{where}: {name} is {value!r}, not {' or '.join(kind.__name__ for kind in allowed)}")
