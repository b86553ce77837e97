"""Training in several real processes is training in one: the same steps, checkpoints and words."""

import os
import signal
import socket
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import orjson
import pytest
import torch
from command_server import program, sightline
from hypothesis import given
from hypothesis import strategies as st
from training_helpers import first_sections

from sightline import training
from sightline.batches import Batch, Sentences, open_features
from sightline.corpus import read
from sightline.distributed import ALONE, Processes, started_processes
from sightline.model import LinkModel
from sightline.problems import Problems, SightlineError
from sightline.settings import Settings
from sightline.training_data import prepare
from sightline.training_run import TrainingRun

#: Steps of a run; fewer where they are not what is looked at.
STEPS, FEW = 50, 15
SMALL = {"dimension": 16, "hidden": 16, "word_dimension": 24, "minimum_count": 2,
         "learning_rate": 1e-3, "negative_documents": 10}  # fmt: skip
#: Eleven documents a batch, which two and three processes cannot share evenly.
#: Rounding alone may change which negative is the hardest, so most runs are in double precision.
OF_TWO = [
    {},
    {"exact": True},
    {"exact": True, "steps": FEW, "similarity": "DC", "loss": "softmax", "word_dropout": 0.2},
    {"exact": True, "steps": FEW, "sentence_encoder": "attention", "layers": 2, "document_cut": 4},
    {"steps": FEW, "similarity": "DC", "sentence_encoder": "attention", "loss": "softmax"},
]
#: The last has two documents a batch: the third process has none.
OF_THREE = [
    {"exact": True, "steps": FEW, "layers": 2, "negatives": "mean"},
    {"exact": True, "steps": FEW, "similarity": "NoStruct", "negative_documents": 1},
]


@pytest.fixture(scope="module")
def corpus_folder(tmp_path_factory, textbooks):
    """40 training and 12 validation sections of the bundled corpus, with its features."""
    return first_sections(tmp_path_factory.mktemp("corpus"), textbooks, train=40, val=12)


def environments(count):
    """What torchrun would set for each of some processes on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    plain = {**os.environ, "OMP_NUM_THREADS": "1"}
    return [{**plain, **shared, "RANK": str(rank)} for rank in range(count)]


def start(commands):
    """One process for each command, joined."""
    return [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for command, environment in zip(commands, environments(len(commands)), strict=True)
    ]


def steps(corpus_folder, changes, processes):
    """The weights and losses of the first steps of a run, `exact` ones in double precision."""
    chosen = {**SMALL, **changes}
    exact, count = chosen.pop("exact", False), chosen.pop("steps", STEPS)
    settings = Settings(**chosen)
    corpus = read(corpus_folder)
    data = prepare(corpus, open_features(corpus), settings, Problems(), lambda words: None)
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(len(data.vocabulary), settings.word_dimension))
    run = TrainingRun(data, embedding.astype(np.float32), settings, Path(), processes=processes)
    if exact:
        run.encoders.double()
        run._features_of = lambda rows: TrainingRun._features_of(run, rows).double()
    before = [parameter.detach().clone() for parameter in run.encoders.parameters()]
    generator = torch.Generator().manual_seed(5)
    losses = []
    while len(losses) < count:
        batches = islice(run.batches(), count - len(losses))
        losses += [run.step(batch, generator) for batch in batches]
        run.state.epoch += 1
    weights = {name: value.numpy() for name, value in run.encoders.state_dict().items()}
    moves = [
        float((now.detach() - then).abs().max())
        for now, then in zip(run.encoders.parameters(), before, strict=True)
    ]
    return {"losses": np.array(losses), "moved": np.array(moves), **weights}


def take_part(corpus_folder, all_changes, output):
    """What each process of the test below does."""
    with started_processes() as processes:
        for place, changes in enumerate(all_changes):
            found = steps(corpus_folder, changes, processes)
            np.savez(Path(output) / f"{place}-{processes.rank}.npz", **found)


@pytest.mark.parametrize(("count", "all_changes"), [(2, OF_TWO), (3, OF_THREE)])
def test_several_processes_make_the_steps_of_one(corpus_folder, tmp_path, count, all_changes):
    request = orjson.dumps([str(corpus_folder), all_changes, str(tmp_path)]).decode()
    started = start([[program("python"), __file__, request]] * count)
    expected = [steps(corpus_folder, changes, ALONE) for changes in all_changes]
    for process in started:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
    seen = 0
    for place, (changes, alone) in enumerate(zip(all_changes, expected, strict=True)):
        most = 1e-9 if changes.get("exact") else 1e-5
        assert alone["moved"].min() > 1e-3
        first = np.load(tmp_path / f"{place}-0.npz")
        for name, value in alone.items():
            np.testing.assert_allclose(first[name], value, rtol=0, atol=most, err_msg=name)
        for rank in range(1, count):
            other = np.load(tmp_path / f"{place}-{rank}.npz")
            assert other.files == first.files == list(alone)
            for name in other.files:
                np.testing.assert_array_equal(other[name], first[name], err_msg=name)
                seen += 1
    assert seen >= 6 * len(all_changes) * (count - 1)


def command(corpus_folder, output, *options):
    # Smooth in the weights: hard negatives would make something large out of rounding.
    fixed = ["--dimension", "16", "--negative-documents", "10", "--learning-rate", "0.001",
             "--similarity", "DC", "--loss", "softmax"]  # fmt: skip
    return ["train", str(corpus_folder), "-o", str(output), *fixed, *options]


def epochs_of(folder):
    log = folder / "log.jsonl"
    lines = log.read_bytes().splitlines() if log.exists() else []
    records = [orjson.loads(line) for line in lines if line.endswith(b"}")]
    return [record for record in records if "epoch" in record]


def test_killed_run_goes_on_with_one_process_and_then_with_two(corpus_folder, tmp_path):
    """kill -9 of two processes in the middle of an epoch, then other numbers of them."""
    output = tmp_path / "killed"
    endless = command(corpus_folder, output, "--epochs", "5000", "--pack-on-disk")
    started = start([[sys.executable, "-m", "sightline", *endless]] * 2)
    deadline = time.monotonic() + 120
    while len(epochs_of(output)) < 2:
        assert all(process.poll() is None for process in started), started[0].communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = len(epochs_of(output))
    assert (output / "packed").is_dir()

    more = ("--resume", "--epochs", str(done + 2))
    sightline(*command(corpus_folder, output, *more))
    more = ("--resume", "--epochs", str(done + 4), "--pack-on-disk", "--json")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                "--master-port", environments(1)[0]["MASTER_PORT"],
                "-m", "sightline", *command(corpus_folder, output, *more)]  # fmt: skip
    last = subprocess.run(torchrun, check=True, capture_output=True, text=True)
    assert last.stderr.count("resuming after epoch") == 1  # one process speaks
    assert len(last.stdout.splitlines()) == 1
    assert not (output / "packed").exists()

    epochs = epochs_of(output)
    assert [record["epoch"] for record in epochs] == list(range(1, done + 5))
    # The kill may fall between the log's line of the last epoch and its checkpoint.
    processes = [record["processes"] for record in epochs]
    assert processes[0] == 2 and processes[-4:] == [1, 1, 2, 2]
    whole = tmp_path / "whole"
    settings = Settings(
        dimension=16, learning_rate=1e-3, similarity="DC", loss="softmax", epochs=done + 4
    )
    training.train(read(corpus_folder), whole, settings)
    for one, other in zip(epochs_of(whole), epochs, strict=True):
        for name in ("training_loss", "validation_loss"):
            assert one[name] == pytest.approx(other[name], abs=1e-3)
    assert LinkModel.from_pretrained(output).settings == settings


def test_processes_that_differ_end_with_a_sentence(corpus_folder, tmp_path):
    commands = [
        [program(), *command(corpus_folder, tmp_path / "m", "--seed", seed)] for seed in "12"
    ]
    started = start(commands)
    said = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [1, 1]
    assert "Another process of this training run ended" in said[0]
    assert "Process 1 has other settings or reads another corpus" in said[1]
    assert not any("Traceback" in words for words in said)


def test_tuning_the_backbone_is_for_one_process(corpus_folder, tmp_path):
    settings = Settings(finetune_images=True)
    with pytest.raises(SightlineError, match="one process only"):
        training.train(read(corpus_folder), tmp_path, settings, processes=Processes(0, 2))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_said(corpus_folder, tmp_path):
    with pytest.raises(SightlineError, match="torch finds 0"):
        training.train(read(corpus_folder), tmp_path, Settings(**SMALL), device="cuda")


counts = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=9)


@given(counts, st.integers(1, 5))
def test_shares_are_the_batch_in_its_order(documents, count):
    sentences_D, images_D = (np.array(side) for side in zip(*documents, strict=True))
    lengths = np.arange(sentences_D.sum()) % 3 + 1
    batch = Batch(
        Sentences(np.arange(lengths.sum()), lengths), np.arange(images_D.sum()), sentences_D,
        images_D,
    )  # fmt: skip
    shares = Processes(0, count).shares(batch)
    assert len(shares) == count
    parts = [share.of(batch) for share in shares]
    sizes = [len(part.sentences_D) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for name in ("image_rows", "sentences_D", "images_D"):
        whole = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(whole, getattr(batch, name))
    for name in ("token_ids", "lengths"):
        whole = np.concatenate([getattr(part.sentences, name) for part in parts])
        np.testing.assert_array_equal(whole, getattr(batch.sentences, name))


if __name__ == "__main__":
    take_part(*orjson.loads(sys.argv[1]))
