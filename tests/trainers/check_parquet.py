"""Hugging Face `datasets` opens our Parquet export with all its columns, also split and iteration."""

import datasets

from harness import COLLECTED, OUT, WEBGYM, check, empty_folder, phase, run_checks, run_ok

FOLDER = OUT / "parquet-run"


def main() -> None:
    out = empty_folder(FOLDER) / "data"
    for split in ["train", "test"]:
        command = [WEBGYM, "export", COLLECTED / "run=1", "--to", "parquet", "--out", out, "--split", split]
        run_ok(f"export-parquet-{split}", command)
    opened = datasets.load_dataset(str(out), cache_dir=str(FOLDER / "cache"))
    found = {split: sorted(set(zip(rows["split"], rows["iteration"]))) for split, rows in opened.items()}
    wanted = {"train": [("train", number) for number in range(4)], "test": [("test", 0)]}
    check(found == wanted, f"parquet: split and iteration of the rows are {found}, not {wanted}")
    rows = opened["train"]
    last = [index for index, is_last in enumerate(rows["is_last"]) if is_last]
    check(len(last) == 26, f"parquet: {len(last)} train trajectories instead of 26")
    check(None not in rows["screenshot_sha256"], "parquet: a screenshot is missing")
    phase(f"parquet: datasets opens {len(rows)} train and {len(opened['test'])} test steps with split and iteration")


if __name__ == "__main__":
    run_checks(main)
