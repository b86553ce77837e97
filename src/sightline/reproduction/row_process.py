"""One row of a reproduction in a process of its own: train, or score a baseline, then evaluate.

`python -m sightline.reproduction.row_process` reads its request as one JSON line from standard
input, and ends as soon as standard input does: whether the parent stops it or is killed, no run is
left behind. The run's folder is a model folder that training keeps whole at every moment;
`scores.json` is written last and means that the row is finished.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import torch

from sightline.baselines import score_baseline
from sightline.batches import open_features, pack_documents
from sightline.console import report, say
from sightline.corpus import Corpus, read
from sightline.evaluation import DocumentScore, mean_scores, score_packed
from sightline.files import atomic_writer, write_atomically
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.reproduction.documents import choose_documents
from sightline.reproduction.results import DOCUMENTS, SCORES, read_epochs
from sightline.reproduction.rows import BASELINES
from sightline.reproduction.setup import RunRequest
from sightline.training import train
from sightline.training_data import TrainingData
from sightline.training_run import TrainingRun


def run_row(request: RunRequest) -> None:
    """Make the request's row: everything into its folder, `scores.json` last."""
    folder = request.folder
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder):
        for left_over in folder.glob(".sightline-*.tmp"):  # of a run that was killed
            left_over.unlink()
        problems = Problems(strict=request.setup.strict, report=report)
        corpus = read(request.setup.corpus, problems=problems)
        chosen = choose_documents(corpus, request.setup.documents, request.setup.settings.seed)
        make = _model_row if request.row.trained else _baseline_row
        scores, record = make(request, chosen.corpus)
        with atomic_writer(folder / DOCUMENTS) as file:
            for score in scores:
                file.write(orjson.dumps(score.to_record()) + b"\n")
        head = {"row": request.row.name, "negative_documents": request.row.negative_documents}
        tail = {"problems": problems.count, "fingerprint": chosen.fingerprint}
        record = {**head, **record, **tail}
        write_atomically(folder / SCORES, orjson.dumps(record, option=orjson.OPT_INDENT_2))


def _baseline_row(
    request: RunRequest, corpus: Corpus
) -> tuple[list[DocumentScore], dict[str, Any]]:
    setup = request.setup
    reached = score_baseline(
        BASELINES[request.row.name], corpus, "test", setup.features, setup.word_vectors
    )
    test = mean_scores(reached.scores, reached.skipped)
    return reached.scores, {"settings": None, "test": test, "notes": reached.notes}


def _model_row(request: RunRequest, corpus: Corpus) -> tuple[list[DocumentScore], dict[str, Any]]:
    setup, folder = request.setup, request.folder
    store = open_features(corpus, setup.features)
    settings = request.row.settings(setup.settings)
    best = train(corpus, folder, settings, store, setup.word_vectors, resume=True, say=say)
    say("evaluating")
    model = LinkModel.from_pretrained(folder)
    packed = pack_documents(
        corpus.documents("test"), model.vocabulary, store, settings.token_limit,
        corpus.problems, str(corpus.path),
    )  # fmt: skip
    scores, skipped = score_packed(model, packed, store)
    data = TrainingData(model.vocabulary, store, packed, packed)
    validation = {
        key.removeprefix("validation_"): value
        for key, value in best.items()
        if key.startswith("validation_")
    }
    epochs = read_epochs(folder)
    return scores, {
        "settings": settings.to_json(),
        "best_epoch": best["epoch"],
        "validation": validation,
        "test": {"loss": _loss(model, data, folder), **mean_scores(scores, skipped)},
        "seconds": sum(epoch["seconds"] for epoch in epochs),
        "cpu_seconds": sum(epoch["cpu_seconds"] for epoch in epochs),
        "threads": torch.get_num_threads(),
    }


def _loss(model: LinkModel, data: TrainingData, folder: Path) -> float | None:
    """The training objective over the data's validation documents; None if they are too few."""
    if len(data.validation) <= model.settings.negative_documents:
        return None
    run = TrainingRun(data, model.weights["sentence.embedding"], model.settings, folder)
    weights = {name: torch.from_numpy(array.copy()) for name, array in model.weights.items()}
    run.encoders.load_state_dict(weights)
    return run.validation_loss()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two processes never work in one run's folder; the system frees it with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (folder / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SightlineError(
                f"Another process is working in {folder}; wait for it, or name another --output."
            ) from None
        yield


def _end_with_standard_input() -> None:
    """Every file is replaced in one step and the log mended on resume: any moment will do."""
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    """Run the row that standard input asks for; an error is one sentence on standard output."""
    request = RunRequest.from_json(orjson.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    try:
        run_row(request)
    except SightlineError as error:
        sys.stdout.write(str(error))
        sys.stdout.flush()
        os._exit(1)
    sys.stdout.flush()
    # Not a plain return: the watching thread holds standard input, which ending would wait for.
    os._exit(0)


if __name__ == "__main__":
    main()
