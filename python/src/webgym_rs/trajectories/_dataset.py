"""The iterations of a save path, and tables of their steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ._files import JournalFile, PtFile, TrajectoryFile
from ._model import Trajectory
from ._parquet import ParquetFile
from ._rows import rows
from ._unpickle import TrajectoryFileError

if TYPE_CHECKING:
    import datasets  # pyright: ignore[reportMissingTypeStubs]
    import pandas

PT_NAME = re.compile(r"(train|test)_trajectories\.pt\.iteration(\d+)(?:_rank_(\d+))?(\.checkpoint)?")
PARQUET_NAME = re.compile(r"iteration-(\d+)-part-(\d+)\.parquet")


class _Table:
    """What can be turned into a table of steps."""

    def trajectories(self) -> Iterator[Trajectory]:
        """Reads the trajectories one by one."""
        raise NotImplementedError

    def rows(self) -> Iterator[dict[str, Any]]:
        """Returns a row for each step, with the columns of the Parquet dataset (docs/formats.md)."""
        for trajectory in self.trajectories():
            yield from rows(trajectory)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a data frame with one row per step. Needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("pandas is not installed; run: pip install 'webgym-rs[data]'") from error
        return pandas.DataFrame(list(self.rows()))

    def to_hf_dataset(self) -> datasets.Dataset:
        """Returns a Hugging Face dataset with one row per step. Needs datasets."""
        try:
            import datasets  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise ImportError("datasets is not installed; run: pip install 'webgym-rs[data]'") from error
        return datasets.Dataset.from_list(list(self.rows()))  # pyright: ignore[reportUnknownMemberType]


class Iteration(_Table, Sequence[Trajectory]):
    """The trajectories of one iteration, or of one rank of it. Each is read when it is accessed."""

    def __init__(self, path: Path, split: str, number: int, rank: int | None, is_finished: bool, file: TrajectoryFile):
        self.path, self.split, self.number, self.rank, self.is_finished = path, split, number, rank, is_finished
        self._file = file

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What is recorded about the run."""
        return self._file.metadata

    def __len__(self) -> int:
        return len(self._file)

    @overload
    def __getitem__(self, index: int) -> Trajectory: ...
    @overload
    def __getitem__(self, index: slice) -> list[Trajectory]: ...
    def __getitem__(self, index: int | slice) -> Trajectory | list[Trajectory]:
        positions = range(len(self))[index]
        if isinstance(positions, range):
            return [self._file.read(position) for position in positions]
        return self._file.read(positions)

    def trajectories(self) -> Iterator[Trajectory]:
        return iter(self)

    def __repr__(self) -> str:
        return f"<Iteration {self.number} of {self.split}: {len(self)} trajectories in {self.path}>"


class Dataset(_Table, Sequence[Iteration]):
    """The iterations of a save path, by split and number."""

    def __init__(self, iterations: Sequence[Iteration]):
        self._iterations = list(iterations)

    def __len__(self) -> int:
        return len(self._iterations)

    @overload
    def __getitem__(self, index: int) -> Iteration: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Iteration | Dataset:
        found = self._iterations[index]
        return Dataset(found) if isinstance(found, list) else found

    def trajectories(self) -> Iterator[Trajectory]:
        for iteration in self._iterations:
            yield from iteration

    def __repr__(self) -> str:
        return f"<Dataset: {self._iterations}>"


def load(path: str | PathLike[str], *, split: str | None = None) -> Dataset:
    """Opens the trajectories of a save path, a Parquet export, or a single file.

    Trajectories are read when they are accessed. Of an iteration that is not finished, the journals are opened. `split`
    is `train` or `test`; by default both are opened.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    files = [path] if path.is_file() else _files_of(path)
    opened = [iteration for file in files if (iteration := _open(file, single=path.is_file()))]
    finished = {(iteration.split, iteration.number) for iteration in opened if _is_whole(iteration)}
    kept = [one for one in opened if _is_whole(one) or (one.split, one.number) not in finished]
    chosen = [iteration for iteration in kept if split in (None, iteration.split)]
    if not opened:
        raise TrajectoryFileError(f"{path} has no trajectories: expected train_trajectories or test_trajectories in it")
    return Dataset(sorted(chosen, key=lambda one: (one.split, one.number, one.rank or 0)))


def _is_whole(iteration: Iteration) -> bool:
    """Whether the file holds all of an iteration; it then replaces journals and files of ranks."""
    return iteration.is_finished and (iteration.rank is None or iteration.path.suffix == ".parquet")


def _files_of(save_path: Path) -> list[Path]:
    folders = [save_path, *(save_path / name for name in ("train_trajectories", "test_trajectories", "train", "test"))]
    return [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]


def _open(path: Path, single: bool) -> Iteration | None:
    """Opens a file of trajectories by its name; None if it is something else. A single file may have any name."""
    if match := PT_NAME.fullmatch(path.name):
        split, number, rank, journal = match.groups()
        kind = JournalFile if journal else PtFile
        file = kind(path, split, int(number))
        return Iteration(path, split, int(number), None if rank is None else int(rank), not journal, file)
    if match := PARQUET_NAME.fullmatch(path.name):
        split, number, rank = path.parent.name, int(match[1]), int(match[2])
        return Iteration(path, split, number, rank, True, ParquetFile(path, split, number))
    if single:
        file = PtFile(path, "", 0)
        metadata = file.metadata
        split, number = metadata.get("split") or "", metadata.get("iteration") or 0
        return Iteration(path, split, number, None, True, PtFile(path, split, number))
    return None
