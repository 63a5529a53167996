"""Composes configurations with the real hydra-core.

Reads a JSON list of cases from standard input and writes a JSON list of {"ok": config} or {"error": text} in the
same order."""

import json
import math
import os
import sys
import warnings

warnings.simplefilter("ignore")

from hydra import compose, initialize_config_dir  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402


def to_json(value):
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def run(case):
    os.environ.update(case["environment"])
    try:
        with initialize_config_dir(version_base=None, config_dir=case["folder"]):
            config = compose(config_name=case["name"], overrides=case["overrides"])
            return {"ok": to_json(OmegaConf.to_container(config, resolve=True))}
    except BaseException as error:  # noqa: BLE001 - the kind of failure is not compared
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        for name in case["environment"]:
            os.environ.pop(name, None)


json.dump([run(case) for case in json.load(sys.stdin)], sys.stdout)
