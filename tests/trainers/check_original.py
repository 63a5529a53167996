"""The original's own programs, unmodified, on what collect_mixed.py collected; then webgym on files that it saved.

usage: check_original.py ORIGINAL     needs a copy of microsoft/webgym; runs with its Python packages
"""

import collections
import json
import shutil
import signal
import sys
from pathlib import Path

import matplotlib
from gradio_client import Client

import field_types
import trajectory_file
from harness import COLLECTED, OUT, WEBGYM, Process, check, empty_folder, free_port, phase, run, run_checks, run_ok
from scripted_server import ScriptedServer

FOLDER = OUT / "original-run"
HERE = Path(__file__).resolve().parent


def environment(original: Path) -> dict:
    """Returns an environment in which the original's programs find their package and no network: the viewer would
    otherwise publish the pages through a share link."""
    nowhere = "http://127.0.0.1:9"
    return {
        "PYTHONPATH": str(original),
        "PYTHONDONTWRITEBYTECODE": "1",
        "WANDB_MODE": "offline",
        "WANDB_API_KEY": "",
        "HF_TOKEN": "",
        "HF_HUB_OFFLINE": "1",
        "MPLBACKEND": "Agg",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_TEMP_DIR": str(FOLDER / "gradio"),
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "no_proxy": "127.0.0.1,localhost",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def read_samples(path: Path) -> collections.Counter:
    """Returns the samples of a LLaMA-Factory file as a multiset of (prompt, response)."""
    samples = collections.Counter()
    for sample in json.loads(path.read_text()):
        *history, last = sample["conversations"]
        prompt = [sample["system"], history, sample.get("images", [])]
        samples[json.dumps(prompt, sort_keys=True), last["value"]] += 1
    return samples


def export_samples(save_path: Path, name: str) -> collections.Counter:
    """Returns the samples that `webgym export` selects by the original's rules."""
    out = empty_folder(FOLDER / name)
    rules = ["--only-successful", "--drop-unchanged", "--min-steps", "2"]
    run_ok(name, [WEBGYM, "export", save_path, "--to", "llamafactory", "--out", out, *rules])
    return read_samples(out / "webgym_train.json")


def difference(one: collections.Counter, other: collections.Counter) -> str:
    only = [*(one - other), *(other - one)]
    return f"{sum((one - other).values())} only there, {sum((other - one).values())} only here, the first: {only[:1]}"


def check_update_prepare(original: Path, save_path: Path, data: Path) -> None:
    settings = [f"save_path='{save_path}'", f"data_path='{data}'", "policy_config.base_model=Qwen/Qwen3-VL-8B-Instruct"]
    settings += ["log_config.run_name=check", "log_config.entity_name=check"]
    command = [sys.executable, original / "scripts" / "update_prepare.py", "--config-name", "update_online", *settings]
    run_ok("update_prepare", command, environment(original), FOLDER)
    theirs, ours = read_samples(save_path / "llamafactory_data" / "finetune.json"), export_samples(save_path, "export")
    check(theirs, "update_prepare.py selected no sample")
    check(theirs == ours, f"update_prepare.py and webgym export select different samples: {difference(theirs, ours)}")
    missing = {name for prompt, _ in theirs for name in json.loads(prompt)[2] if not Path(name).is_file()}
    check(not missing, f"update_prepare.py names images that do not exist: {sorted(missing)[:3]}")
    phase(f"original: update_prepare.py selects the same {theirs.total()} samples as webgym export")


def check_visualize(original: Path, save_path: Path, data: Path, mode: str) -> None:
    (FOLDER / "metrics.png").unlink(missing_ok=True)
    program = original / "analysis" / "visualize_results.py"
    arguments = ["--data-path", data, "--log-path", save_path, "--mode", mode]
    output = run_ok("visualize_results", [sys.executable, program, *arguments], environment(original), FOLDER)
    check((FOLDER / "metrics.png").is_file(), f"visualize_results.py wrote no metrics.png: {output[-600:]}")
    phase(f"original: visualize_results.py plots {save_path.name} ({mode})")


def check_viewer(original: Path, save_path: Path, data: Path, split: str) -> None:
    """Opens every step of every trajectory in the viewer."""
    trajectories = [one for iteration in load_split(save_path, split) for one in iteration]
    give_font(save_path)
    port = free_port()
    settings = {**environment(original), "GRADIO_SERVER_PORT": str(port), "GRADIO_SERVER_NAME": "127.0.0.1"}
    program = original / "analysis" / "view_trajs.py"
    arguments = [split, "--data-path", data, "--log-path", save_path, "--show-prompt"]
    with Process(f"view_trajs-{split}", [sys.executable, "-u", program, *arguments], settings, FOLDER) as viewer:
        viewer.wait_until(lambda: "Running on local URL" in viewer.log(), 120, "local URL")
        client = Client(f"http://127.0.0.1:{port}", verbose=False, download_files=False)
        count = 0
        for number, trajectory in enumerate(trajectories):
            task, answer, reward, *_ = client.predict(str(number), "0", api_name="/lambda")
            check_first_page(number, trajectory, task, answer, reward)
            for step, record in enumerate(trajectory):
                shown = client.predict(str(number), str(step), api_name="/update_step_info")
                response = record["response"]
                missing = response is not None and response.raw_response.strip() not in str(shown[-1])
                check(not missing, f"view_trajs.py shows for trajectory {number}, step {step}: {shown[-1]}")
                count += 1
        viewer.signal(signal.SIGINT)
        code = viewer.wait(30)
        check(code == 0, f"view_trajs.py ended with exit code {code}:\n{viewer.last_lines()}")
        errors = [line for line in viewer.log().splitlines() if line.startswith(("Error ", "Traceback"))]
        check(not errors, f"view_trajs.py reports {errors[:3]}")
    phase(f"original: view_trajs.py {split} shows all {count} steps of {len(trajectories)} trajectories")


def give_font(save_path: Path) -> None:
    """Puts a font where the viewer looks for one before it tries to download it."""
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    (save_path / "fonts").mkdir(exist_ok=True)
    shutil.copy(font, save_path / "fonts" / "NotoSans-Regular.ttf")


def check_first_page(number: int, trajectory: list, task: str, answer: str, reward: str) -> None:
    name, last = trajectory[0]["observation"].task.task_name, trajectory[-1]
    check(name in task, f"view_trajs.py shows {task!r} as the task of trajectory {number}, not {name!r}")
    check(str(last["reward"].reward) in reward, f"view_trajs.py shows {reward!r} as the reward of trajectory {number}")
    if last["action"].action["key"] == "answer":
        wanted = last["action"].action["arguments"]["content"]
        check(wanted in answer, f"view_trajs.py shows {answer!r} as the answer of trajectory {number}, not {wanted!r}")


def check_reading_theirs(original: Path, save_path: Path) -> None:
    """Lets the original load our files and save them by its own function, and reads the result with webgym."""
    samples = export_samples(save_path, "export")
    copy = empty_folder(FOLDER / "saved-by-original")
    run_ok("save_by_original", [sys.executable, HERE / "save_by_original.py", save_path, copy], environment(original))
    files = sorted(path.name for path in (copy / "train_trajectories").iterdir())
    check(files[0] == "train_trajectories.pt.iteration1", f"the original saved {files}")
    ours = export_samples(copy, "export-of-theirs")
    check(ours == samples, f"webgym export differs on files that the original saved: {difference(samples, ours)}")
    for split in ["train", "test"]:
        total = sum(len(trajectories) for trajectories in load_split(copy, split))
        metrics = run_ok("metrics", [WEBGYM, "-q", "metrics", copy, "--split", split, "--last", "1000", "--json"])
        counted = f'"total_trajectories":{total}'
        check(
            counted in metrics.replace(" ", ""),
            f"webgym metrics does not count {total} {split} trajectories: {metrics}",
        )
    for arguments in [["ls", copy], ["show", copy, "0", "--iteration", "1"], ["check", copy]]:
        run_ok(f"trajectories-{arguments[0]}", [WEBGYM, "trajectories", *arguments])
    plot = FOLDER / "plot.png"
    plot.unlink(missing_ok=True)
    run_ok("plot", [WEBGYM, "plot", copy, "--out", plot])
    check(plot.is_file(), "webgym plot wrote no image for files that the original saved")
    phase("original: webgym metrics, export, trajectories and plot read the files that the original saved")


def check_judging_theirs() -> None:
    """Judges the files of the original again. The scripted judge decides as before if it sees the same answers."""
    copy = FOLDER / "saved-by-original"
    rewards = lambda: [one[-1]["reward"].reward for iteration in load_split(copy, "train") for one in iteration]
    before = rewards()
    check(1 in before and 0 in before, f"the original saved the rewards {before}")
    settings = ["judge=openai", "openai_config.model=scripted", f"openai_config.base_url={ScriptedServer().judge_url}"]
    settings += [f"save_path='{copy}'", f"data_path='{copy}'"]
    command = [WEBGYM, "judge", copy, "--split", "train", *settings]
    code, output = run("judge", command, {"OPENAI_API_KEY": "scripted"})
    # The judge never decides on one kind of task; then the reward in the file stays.
    check(code == 0 and "2 kept" in output, f"webgym judge ended with exit code {code}: {output[-400:]}")
    check(rewards() == before, f"webgym judge changed the rewards of the original's files from {before} to {rewards()}")
    phase(f"original: webgym judge reads the answers of {len(before)} trajectories that the original saved")


def load_split(save_path: Path, split: str) -> list[list]:
    """Returns the trajectories of each iteration, in the order of the iterations."""
    files = (save_path / f"{split}_trajectories").glob("*.pt.iteration*")
    in_order = sorted(files, key=lambda path: int(path.name.rsplit("iteration", 1)[1]))
    return [trajectory_file.load(path)["trajectories"] for path in in_order]


def check_types(save_path: Path) -> None:
    for path in sorted(save_path.glob("*_trajectories/*.pt.iteration*")):
        field_types.check_types(trajectory_file.load(path), path.name)
    phase("original: PyTorch reads every field with the type of the contract")


def main() -> None:
    original = Path(sys.argv[1]).resolve()
    empty_folder(FOLDER)
    save_path, data = COLLECTED / "run=1", COLLECTED / "data"
    run_checks(
        lambda: check_types(save_path),
        lambda: check_update_prepare(original, save_path, data),
        lambda: check_visualize(original, save_path, data, "train-test"),
        # Beside a journal that --fresh set aside.
        lambda: check_visualize(original, COLLECTED / "fresh=1", data, "train-only"),
        lambda: check_viewer(original, save_path, data, "train"),
        lambda: check_viewer(original, save_path, data, "test"),
        lambda: check_reading_theirs(original, save_path),
        check_judging_theirs,
    )


if __name__ == "__main__":
    main()
