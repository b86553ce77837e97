"""Curves of a training run on TensorBoard, read back as TensorBoard reads them."""

import os
import subprocess
import sys

import orjson
import pytest
from training_helpers import first_sections

from sightline import training
from sightline.batches import open_features
from sightline.corpus import read
from sightline.installed_packages import install_command
from sightline.settings import Settings

SMALL = {"dimension": 8, "hidden": 8, "negative_documents": 5, "learning_rate": 1e-3}
CURVES = {
    "loss/training": "training_loss",
    "loss/validation": "validation_loss",
    "validation/auc": "validation_auc",
    "validation/precision_at_1": "validation_p@1",
    "validation/precision_at_5": "validation_p@5",
    "training/learning_rate": "learning_rate",
    "training/documents_per_second": "documents_per_second",
}


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory, textbooks):
    return first_sections(tmp_path_factory.mktemp("corpus"), textbooks, train=12, val=6)


@pytest.fixture
def run(corpus_folder, tmp_path):
    def run(epochs, resume=False, tensorboard=tmp_path / "curves"):
        corpus = read(corpus_folder)
        settings = Settings(**SMALL, epochs=epochs)
        training.train(corpus, tmp_path / "m", settings, open_features(corpus), resume=resume,
                       tensorboard=tensorboard)  # fmt: skip

    return run


def curves(folder):
    """The points of each curve, as (epoch, value), after what was taken back is gone."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(point.step, point.value) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def log(folder):
    lines = [orjson.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]
    return [record for record in lines if "epoch" in record]


def check(tmp_path, epochs):
    """Each curve has one point an epoch, the one of the log."""
    found, records = curves(tmp_path / "curves/m"), log(tmp_path / "m")
    assert found.keys() == CURVES.keys()
    assert [record["epoch"] for record in records] == list(range(1, epochs + 1))
    for name, key in CURVES.items():
        expected = [(record["epoch"], pytest.approx(record[key])) for record in records]
        assert found[name] == expected


def test_a_resumed_run_goes_on_with_its_curves(run, tmp_path):
    pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")
    run(2)
    check(tmp_path, 2)
    run(4, resume=True)
    check(tmp_path, 4)


def test_an_epoch_that_is_done_again_has_one_point(run, tmp_path, monkeypatch):
    """A kill after the log and the curves were written, and before the checkpoint was."""
    pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")
    run(1)
    with monkeypatch.context() as patched:
        patched.setattr(training, "save_checkpoint", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            run(3, resume=True)
    assert len(log(tmp_path / "m")) == 2
    run(3, resume=True)
    check(tmp_path, 3)


def test_curves_that_are_asked_for_late_are_whole(run, tmp_path):
    pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")
    run(2, tensorboard=None)
    assert not (tmp_path / "curves").exists()
    run(3, resume=True)
    check(tmp_path, 3)


def test_without_the_package_the_extra_is_named_before_anything_is_done(corpus_folder, tmp_path):
    (tmp_path / "tensorboard.py").write_text("raise ImportError('not here')")
    command = [sys.executable, "-m", "sightline", "train", str(corpus_folder), "-o",
               str(tmp_path / "m"), "--tensorboard", str(tmp_path / "curves")]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert install_command("tensorboard") in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()
