"""Starts and stops what the checks need: processes, a farm, rollouts. Everything it starts ends with this process."""

import json
import os
import signal
import sys
import traceback
import urllib.error
import urllib.request
from pathlib import Path

import process
from farm import Farm
from process import CheckFailed, check, empty_folder, free_port

__all__ = ["CheckFailed", "Farm", "Process", "check", "empty_folder", "free_port"]

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "trainers"
COLLECTED = OUT / "collected"  # written by collect_mixed.py
WEBGYM = Path(os.environ.get("WEBGYM", ROOT / "target" / "release" / "webgym"))

def phase(text: str) -> None:
    print(f"test-trainers: {text}", flush=True)


def run_checks(*checks) -> None:
    """Runs every check, also after one that failed, and reports each failure. Exits with 1 if there was one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A shell starts background processes with SIGINT ignored, which our children would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = 0
    for one in checks:
        try:
            one()
        except CheckFailed as failure:
            failed += 1
            print(f"test-trainers: FAILED: {failure}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            sys.exit(130)
        except Exception:
            failed += 1
            traceback.print_exc()
            print("test-trainers: FAILED: see the traceback above", file=sys.stderr, flush=True)
    sys.exit(1 if failed else 0)


class Process(process.Process):
    """A child with its output in a file named after it."""

    def __init__(self, name: str, command: list, env: dict | None = None, cwd: Path | None = None):
        super().__init__(OUT / "logs" / f"{name}.log", command, env, cwd)


def run(
    name: str, command: list, env: dict | None = None, cwd: Path | None = None, seconds: float = 600
) -> tuple[int, str]:
    """Runs a command to its end. Returns its exit code and its output."""
    with Process(name, command, env, cwd) as process:
        return process.wait(seconds), process.log()


def run_ok(name: str, command: list, env: dict | None = None, cwd: Path | None = None, seconds: float = 600) -> str:
    """Runs a command that must succeed. Returns its output."""
    code, output = run(name, command, env, cwd, seconds)
    last = "\n".join(output.splitlines()[-15:])
    check(code == 0, f"{name} ended with exit code {code}; its last lines:\n{last}")
    return output


def start_farm(instances: int) -> tuple[Farm, int]:
    """Starts a farm. Returns it with the port of its master."""
    farm = Farm(WEBGYM, instances, OUT / "logs" / "farm.log")
    return farm, farm.port


def rollout_command(
    save_path: Path, tasks: Path, farm_port: int, policy_url: str, *more: str, split: str = "train"
) -> list:
    """Returns the command of a rollout of all tasks of the file, on the given farm."""
    size = sum(1 for line in tasks.read_text().splitlines() if line)
    own = {
        "save_path": f"'{save_path}'",
        "data_path": f"'{tasks.parent}'",
        f"env_config.{split}_tasks": tasks.name,
        f"env_config.{split}_tasks_rollout_size": size,
        "env_config.host_ip": "127.0.0.1",
        "env_config.master_port": farm_port,
        "env_config.vllm_server_url": policy_url,
        "env_config.server_size": 3,
        "env_config.monitor_port": "null",
        "env_config.completion_threshold": 1,
        "seed": 7,
    }
    settings = [f"{key}={value}" for key, value in own.items()]
    return [WEBGYM, "rollout", f"--config-name=rollout_{split}", *settings, *more]


def request(url: str, body: dict | None = None, key: str | None = None, seconds: float = 120) -> tuple[int, str]:
    """Sends a GET, or a POST with a JSON body. Returns the status and the body of the response, also of an error."""
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=seconds) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
