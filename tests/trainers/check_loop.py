"""`webgym loop` with real programs: vLLM serves, Chromium collects practice tasks, LLaMA-Factory trains (preset).

Two iterations train two steps each: the first one from the tiny model, the second one from the checkpoint of the first,
with the state of its optimizer.
"""

import json
import sys
import threading
import time
from pathlib import Path

from safetensors.torch import load_file

from harness import OUT, WEBGYM, Process, check, empty_folder, free_port, phase, request, run_checks, start_farm
from vllm_server import ENVIRONMENT as VLLM_ENVIRONMENT

FOLDER = OUT / "loop-run"
SAVE_PATH = FOLDER / "run=1"
ITERATIONS, STEPS, TASKS = 2, 2, 8
TRAINED = ["serve", "collect", "export", "train", "verify", "switch"]
TRAINER_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "OMP_NUM_THREADS": "2",
    "CUDA_VISIBLE_DEVICES": "",
    # The programs of an environment are not in the path.
    "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
}
# For a processor instead of GPUs, and for two short steps. Everything else is as the preset has it.
SETTINGS = {
    "use_cpu": True,
    "bf16": False,
    "max_steps": STEPS,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-5,
    "warmup_steps": 0,
    "preprocessing_num_workers": 1,
    "dataloader_num_workers": 0,
}


def write_tasks() -> Process:
    """Serves the practice sites. The tasks have the one answer that the tiny model knows."""
    path = FOLDER / "practice.jsonl"
    practice = Process("loop-practice", [WEBGYM, "practice", "--port=0", "--tasks", path])
    practice.wait_until(lambda: '"listening"' in practice.log(), 60, "practice sites")
    tasks = [json.loads(line) for line in path.read_text().splitlines()]
    public = [task for task in tasks if "vault" not in task["website"]]  # without a login
    kept = ["task_id", "task_name", "website", "domain", "subdomain", "difficulty"]
    lines = [{key: task[key] for key in kept if key in task} for task in public[:TASKS]]
    answer = {"evaluator_reference": "shown", "definite_answer": "42"}
    (FOLDER / "tasks.jsonl").write_text("".join(json.dumps(line | answer) + "\n" for line in lines))
    check(len(lines) == TASKS, f"loop: there are only {len(lines)} practice tasks")
    return practice


def write_config(farm_port: int, port: int) -> None:
    vllm = [str(OUT / "vllm" / "bin" / "vllm"), "serve", "{model}", "--host", "127.0.0.1", "--port", "{port}"]
    vllm += ["--dtype", "float32", "--enforce-eager", "--max-num-seqs", "8"]
    vllm += ["--allowed-local-media-path", str(SAVE_PATH)]
    rollout = {
        "data_path": f"'{FOLDER}'",
        "env_config.host_ip": "127.0.0.1",
        "env_config.master_port": farm_port,
        "env_config.server_size": 3,
        "env_config.monitor_port": "null",
        "judge": "reference",
        "policy_config.top_k": -1,
    }
    split = lambda name, size: [
        *(f"{key}={value}" for key, value in rollout.items()),
        f"env_config.{name}_tasks=tasks.jsonl",
        f"env_config.{name}_tasks_rollout_size={size}",
        *(f"env_config.{name}_difficulty_max_steps.{level}=10" for level in ("easy", "medium", "hard")),
    ]
    config = {
        "defaults": ["loop", "_self_"],
        "save_path": str(SAVE_PATH),
        "model": str(OUT / "model"),
        "iterations": ITERATIONS,
        "first_iteration": 1,
        "serve": {"command": vllm, "url": f"http://127.0.0.1:{port}", "environment": VLLM_ENVIRONMENT},
        "collect": {"arguments": split("train", TASKS)},
        "evaluate": {"at_end": True, "arguments": split("test", 3)},
        "train": {"preset": "llamafactory", "settings": SETTINGS, "environment": TRAINER_ENVIRONMENT, "retries": 0},
    }
    (FOLDER / "real.yaml").write_text(json.dumps(config, indent=1))  # JSON is YAML


class ServedModels:
    """Asks vLLM again and again which model it serves, and keeps the answers in order."""

    def __init__(self, port: int):
        self.seen: list[tuple[str, str]] = []
        self.url = f"http://127.0.0.1:{port}/v1/models"
        self.has_ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self) -> None:
        while not self.has_ended.wait(0.5):
            status, body = request(self.url, seconds=5)
            models = [(model["id"], model["root"]) for model in json.loads(body)["data"]] if status == 200 else []
            self.seen += [model for model in models if model not in self.seen[-1:]]

    def stop(self) -> list[tuple[str, str]]:
        self.has_ended.set()
        self.thread.join()
        return self.seen


def processes_left(port: int) -> list[str]:
    """Returns the command lines that name the save path or the port of the model server."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if str(SAVE_PATH) in line or f"--port {port}" in line:
            found.append(line)
    return found


def check_state() -> dict:
    state = json.loads((SAVE_PATH / "loop" / "state.json").read_text())
    check(state["status"] == "finished", f"loop: its state is {state['status']}: {state.get('reason')}")
    phases = [(each["number"], [one["phase"] for one in each["phases"]]) for each in state["iterations"]]
    wanted = [(1, TRAINED), (2, TRAINED), (3, ["serve", "evaluate"])]
    check(phases == wanted, f"loop: the phases are {phases}, not {wanted}")
    for each in state["iterations"]:
        other = [one for one in each["phases"] if one["status"] != "done" or one["failures"]]
        check(not other, f"loop: iteration {each['number']} has phases that did not succeed at once: {other}")
    return state


def check_checkpoints(model: Path) -> None:
    """Every checkpoint has other weights than the one before, the steps of all trainings, and the optimizer's state."""
    folders = [model, *(SAVE_PATH / "checkpoints" / f"iteration_{number}" for number in (1, 2))]
    weights = [load_file(folder / "model.safetensors") for folder in folders]
    for number, (before, after) in enumerate(zip(weights, weights[1:]), start=1):
        other = before.keys() ^ after.keys()
        check(not other, f"loop: checkpoint {number} has other tensors: {other}")
        changed = [name for name in after if not before[name].equal(after[name])]
        check(changed, f"loop: the weights of iteration {number} equal those before it")
        trained = json.loads((folders[number] / "trainer_state.json").read_text())["global_step"]
        check(trained == number * STEPS, f"loop: checkpoint {number} is at step {trained}, not {number * STEPS}")
        check((folders[number] / "optimizer.pt").is_file(), f"loop: checkpoint {number} has no optimizer.pt")
    link = (SAVE_PATH / "model.pt").readlink()
    check(link == Path("checkpoints/iteration_2"), f"loop: model.pt links to {link}")


def check_training_files() -> int:
    """LLaMA-Factory has read the train_config.yaml of the export, also at the place where the original has it."""
    link = SAVE_PATH / "llamafactory_data"
    check(link.readlink() == Path("loop/data/iteration_2"), f"loop: llamafactory_data links to {link.readlink()}")
    config = (link / "train_config.yaml").read_text()
    first = SAVE_PATH / "checkpoints" / "iteration_1"
    data = f'dataset_dir: "{SAVE_PATH}/loop/data/iteration_2"'
    for line in [data, f'resume_from_checkpoint: "{first}"', "max_steps: 4"]:
        check(line in config.splitlines(), f"loop: train_config.yaml has no line {line}:\n{config}")
    log = (SAVE_PATH / "loop" / "logs" / "iteration_2_train.log").read_text(errors="replace")
    is_continued = "Continuing training from" in log or "global step 2" in log
    check(is_continued, "loop: the second training did not continue the first")
    return len(json.loads((link / "webgym_train.json").read_text()))


def check_loop() -> None:
    empty_folder(FOLDER)
    practice, (farm, farm_port), port = write_tasks(), start_farm(3), free_port()
    write_config(farm_port, port)
    command = [WEBGYM, "loop", "--config-path", FOLDER, "--config-name", "real"]
    served, started = ServedModels(port), time.monotonic()
    with Process("loop", command) as loop:
        phase("loop: two iterations with vLLM and LLaMA-Factory (about ten minutes)")
        code = loop.wait(2400)
        check(code == 0, f"loop: exit code {code}:\n{loop.last_lines(25)}")
    minutes, seen = (time.monotonic() - started) / 60, served.stop()
    check_state()
    check_checkpoints(OUT / "model")
    examples = check_training_files()
    paths = [str(OUT / "model"), *(str(SAVE_PATH / "checkpoints" / f"iteration_{number}") for number in (1, 2))]
    check(seen == [(path, path) for path in paths], f"loop: vLLM served {seen}, not {paths}")
    left = processes_left(port)
    check(not left, f"loop: processes are left: {left}")
    practice.stop()
    farm.stop()
    phase(f"loop: finished in {minutes:.1f} min; vLLM served the model and both checkpoints; {examples} examples")


if __name__ == "__main__":
    run_checks(check_loop)
