"""A training run on TensorBoard: numbers of `log.jsonl`, one point an epoch.

Needs the extra `tensorboard`; `log.jsonl` remains the run's own record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sightline.problems import MissingExtraError

Record = Mapping[str, Any]

#: The names of the curves, by the keys of the log; those before a slash share a group.
_CURVES = {
    "training_loss": "loss/training",
    "validation_loss": "loss/validation",
    "validation_auc": "validation/auc",
    "validation_p@1": "validation/precision_at_1",
    "validation_p@5": "validation/precision_at_5",
    "learning_rate": "training/learning_rate",
    "documents_per_second": "training/documents_per_second",
}


def check_tensorboard() -> None:
    """Say at the start of a run, not at the end of its first epoch, that a package is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("--tensorboard", "tensorboard") from error


@contextmanager
def tensorboard_log(
    folder: Path | None, epochs_done: int, past: Iterable[Record]
) -> Iterator[Callable[[Record], None]]:
    """Give what writes the record of an epoch; nothing is written without a folder.

    Points of epochs that will be done again are taken back. Where the folder has none yet, those
    of the `past` records, up to the last epoch that was done, come first.
    """
    if folder is None:
        yield lambda _: None
        return
    from torch.utils.tensorboard import SummaryWriter

    empty = not any(folder.glob("*tfevents*"))
    writer: Any = SummaryWriter(str(folder), purge_step=epochs_done + 1)

    def add(record: Record) -> None:
        for key, curve in _CURVES.items():
            if record.get(key) is not None:
                writer.add_scalar(curve, record[key], record["epoch"])
        writer.flush()

    try:
        for record in past if empty else ():
            if 0 < record.get("epoch", 0) <= epochs_done:
                add(record)
        yield add
    finally:
        writer.close()
