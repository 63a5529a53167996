"""verl's datasets load our export: RLHFDataset for reinforcement learning, MultiTurnSFTDataset for fine-tuning."""

import contextlib
import io
import shlex
from pathlib import Path

import pandas
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from transformers import AutoProcessor
from verl.trainer.sft_trainer import create_sft_dataset
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
from verl.utils.dataset.rl_dataset import RLHFDataset

from harness import COLLECTED, OUT, WEBGYM, check, empty_folder, phase, run_checks, run_ok

FOLDER = OUT / "verl-run"
LONGEST = 16384


def export() -> Path:
    rules = ["--only-successful", "--drop-unchanged", "--min-steps", "2"]
    run_ok(
        "export-verl", [WEBGYM, "export", COLLECTED / "run=1", "--to", "verl", "--out", empty_folder(FOLDER), *rules]
    )
    return FOLDER / "train.parquet"


def check_reinforcement(path: Path, processor, rows: int) -> None:
    config = OmegaConf.create(
        {"cache_dir": str(FOLDER / "cache"), "max_prompt_length": LONGEST, "filter_overlong_prompts_workers": 1}
    )
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        dataset = RLHFDataset(str(path), processor.tokenizer, config, processor)
        items = [dataset[index] for index in range(len(dataset))]
    check(len(items) == rows, f"verl: RLHFDataset keeps {len(items)} of {rows} rows:\n{printed.getvalue()[-800:]}")
    check(
        all(item["data_source"] and item["reward_model"] for item in items),
        "verl: a row has no data source or reward model",
    )


def check_supervised(path: Path, processor, rows: int) -> None:
    config = {"max_length": LONGEST, "truncation": "error"}
    with contextlib.redirect_stdout(io.StringIO()):
        dataset = MultiTurnSFTDataset(str(path), processor.tokenizer, config, processor)
        items = [dataset[index] for index in range(len(dataset))]
    check(len(items) == rows, f"verl: MultiTurnSFTDataset has {len(items)} of {rows} rows")
    replies = [row["response"] for row in pandas.read_parquet(path)["extra_info"]]
    for index, (item, reply) in enumerate(zip(items, replies)):
        trained = processor.tokenizer.decode(item["input_ids"][item["loss_mask"] == 1])
        last = trained.split("<|im_end|>")[-2].strip()
        # Exports write these words differently, because trainers take them for media.
        check(
            last.replace("&lt;video&gt;", "<video>") == reply.strip(),
            f"verl: row {index} trains {last!r}, the reply is {reply!r}",
        )


def preset_overrides() -> list[str]:
    """Returns the arguments that `webgym loop` gives verl with its preset, for a path that Hydra would misread."""
    folder = FOLDER / "lr=1"
    settings = [f"save_path='{folder}'", f"model={OUT / 'model'}", "iterations=1", "train.preset=verl"]
    output = run_ok("loop-verl", [WEBGYM, "loop", "--dry-run", *settings, "+train.settings={data.num_workers: 0}"])
    line = next(line for line in output.splitlines() if line.startswith("train:"))
    words = shlex.split(line)
    check("verl.trainer.sft_trainer" in words, f"verl: the preset starts {line}")
    return words[words.index("verl.trainer.sft_trainer") + 1 :]


def check_preset(path: Path, processor, rows: int) -> None:
    """verl's own configuration accepts the preset, and its dataset keeps every row with it. Training needs a GPU."""
    overrides = preset_overrides()
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("sft_trainer_engine", overrides=overrides)
    folder = FOLDER / "lr=1"
    wanted = f"{folder}/loop/data/iteration_0/train.parquet"
    check(config.data.train_files == wanted, f"verl: reads {config.data.train_files}")
    check(config.trainer.default_local_dir == f"{folder}/checkpoints/iteration_0.partial", "verl: writes elsewhere")
    check(config.data.num_workers == 0, "verl: train.settings did not reach it")
    check("hf_model" in config.checkpoint.save_contents, "verl: writes no checkpoint that can be served")
    with contextlib.redirect_stdout(io.StringIO()):
        dataset = create_sft_dataset(str(path), config.data, processor.tokenizer, processor)
        lengths = [len(dataset[index]["input_ids"]) for index in range(len(dataset))]
    check(len(lengths) == rows, f"verl: the preset keeps {len(lengths)} of {rows} rows")
    check(rows >= config.data.train_batch_size, "verl: a batch is larger than the data, so nothing would be trained")


def main() -> None:
    path = export()
    processor = AutoProcessor.from_pretrained(OUT / "model")
    rows = len(pandas.read_parquet(path))
    check(rows > 0, "verl: the export has no rows")
    check_reinforcement(path, processor, rows)
    phase(f"verl: RLHFDataset loads {rows} rows with their images")
    check_supervised(path, processor, rows)
    phase(f"verl: MultiTurnSFTDataset loads {rows} rows; each trains the reply of its step")
    check_preset(path, processor, rows)
    phase("verl: its trainer's configuration accepts the preset of webgym loop")


if __name__ == "__main__":
    run_checks(main)
