"""A toy trainer: python train.py DATA MODEL OUTPUT ITERATION RANK. The checkpoint depends only on the data and the model.

The environment variable BEHAVIOUR makes it misbehave: "empty" (exits 0 without output), "half" (writes half of the weights),
"fails" (exits 1), "hangs", "full" (writes until the disk is full), "leaves" (leaves processes behind), "once KIND" (only the first
time).
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

data, model, output, iteration, rank = sys.argv[1:6]
behaviour = os.environ.get("BEHAVIOUR", "")
if behaviour.startswith("once "):
    marker = Path(data).parent / "misbehaved"
    behaviour = "" if marker.exists() else behaviour.removeprefix("once ")
    marker.touch()


def training_data() -> list:
    """What the model is trained on, without times and paths, which differ between runs."""
    lines = Path(data, "train.jsonl").read_text().splitlines()
    trajectories = [json.loads(line) for line in lines]
    rows = [
        [t["task"]["task_name"], [step["action"]["key"] for step in t["steps"]], t["metadata"]["outcome"]] for t in trajectories
    ]
    return sorted(rows)


def before() -> str:
    path = Path(model, "config.json")
    return json.loads(path.read_text())["digest"] if path.exists() else model


if behaviour == "fails":
    sys.exit("out of memory")
if behaviour == "hangs":
    time.sleep(3600)
if behaviour == "empty":
    sys.exit(0)
if behaviour == "full":
    with open(Path(output, "filler"), "wb") as file:
        while True:
            file.write(bytes(1 << 20))
if behaviour == "leaves":
    sleeper = [sys.executable, "-c", "import time; time.sleep(3600)", output]
    subprocess.Popen(sleeper, start_new_session=True)
    subprocess.Popen(["sh", "-c", '"$@" & "$@"', "sh", *sleeper])
if rank != "0":
    time.sleep(0.2)
    sys.exit(0)

digest = hashlib.sha256(json.dumps([before(), iteration, training_data()]).encode()).hexdigest()
Path(output, "config.json").write_text(json.dumps({"digest": digest, "answer": "42"}))
weights = bytes.fromhex(digest)
header = json.dumps({"digest": {"dtype": "U8", "shape": [len(weights)], "data_offsets": [0, len(weights)]}}).encode()
content = struct.pack("<Q", len(header)) + header + weights
Path(output, "model.safetensors").write_bytes(content[: len(content) // 2] if behaviour == "half" else content)
