"""LLaMA-Factory trains the tiny model for one step on our export, and only on the last reply of each sample."""

import json
import sys
from pathlib import Path

from harness import COLLECTED, OUT, WEBGYM, check, empty_folder, phase, run_checks, run_ok

FOLDER = OUT / "llamafactory-run"
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "OMP_NUM_THREADS": "2",
    "CUDA_VISIBLE_DEVICES": "",
}


def export() -> Path:
    data = FOLDER / "data"
    rules = ["--only-successful", "--drop-unchanged", "--min-steps", "2"]
    run_ok(
        "export-llamafactory", [WEBGYM, "export", COLLECTED / "run=1", "--to", "llamafactory", "--out", data, *rules]
    )
    return data


def settings(data: Path) -> dict:
    return {
        "model_name_or_path": str(OUT / "model"),
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "full",
        "template": "qwen3_vl_nothink",
        "dataset": "webgym_train",
        "dataset_dir": str(data),
        "mask_history": True,
        "cutoff_len": 16384,
        "max_samples": 4,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 1,
        "max_steps": 1,
        "learning_rate": 1e-6,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "output_dir": str(FOLDER / "out"),
        "overwrite_cache": True,
        "preprocessing_num_workers": 1,
        "dataloader_num_workers": 0,
        "use_cpu": True,
        "bf16": False,
        "fp16": False,
    }


def check_training() -> None:
    empty_folder(FOLDER)
    data = export()
    samples = json.loads((data / "webgym_train.json").read_text())
    # The first sample is the one that LLaMA-Factory shows: one with history, of which nothing may be trained.
    samples.sort(key=lambda sample: len(sample["conversations"]), reverse=True)
    (data / "webgym_train.json").write_text(json.dumps(samples))
    (FOLDER / "train.yaml").write_text(json.dumps(settings(data)))  # JSON is YAML
    command = [Path(sys.executable).with_name("llamafactory-cli"), "train", FOLDER / "train.yaml"]
    output = run_ok("llamafactory", command, ENVIRONMENT, FOLDER, seconds=900)
    result = json.loads((FOLDER / "out" / "all_results.json").read_text())
    check(result["train_loss"] > 0, f"llamafactory: the loss is {result['train_loss']}")
    check_trained_text(output, samples)
    phase(f"llamafactory: one step on {len(samples)} samples, loss {result['train_loss']:.2f}; only last replies train")


def check_trained_text(output: str, samples: list) -> None:
    """LLaMA-Factory prints the labels of its first sample: with mask_history they are exactly the last reply."""
    shown = output.split("labels:", 1)
    check(len(shown) == 2, "llamafactory: its log shows no labels")
    trained = shown[1].split("[INFO", 1)[0].replace("<|im_end|>", "").strip()
    reply = samples[0]["conversations"][-1]["value"].strip()
    check(trained == reply, f"llamafactory: the trained text is {trained!r}, the last reply {reply!r}")


if __name__ == "__main__":
    run_checks(check_training)
