"""Engines: the same output whoever runs the shards, and nothing lost when they are killed."""

import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from command_server import sightline
from sharded_corpus import write_shards
from test_shards import all_lines

from sightline.engines import processes
from sightline.linking import LinkChoices
from sightline.problems import SightlineError
from sightline.shard_work import link_work
from sightline.shards import find_shards


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("engines"), shards=6, documents=300)


@pytest.fixture(scope="module")
def one_process(corpus, tmp_path_factory):
    """The output of one worker: what all others are compared with."""
    folder = tmp_path_factory.mktemp("one")
    sightline(*command(corpus, folder), "--workers", 1)
    return all_lines(folder)


def command(corpus, output):
    shards, model, features = corpus
    return ("link", shards, "-o", output, "--model", model, "--features", features)


def children(process):
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
    return [int(number) for number in found.stdout.split()]


def test_two_processes_give_what_one_gives(corpus, one_process, tmp_path):
    assert len(one_process) == 1800
    sightline(*command(corpus, tmp_path), "--workers", 2)
    assert all_lines(tmp_path) == one_process


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_a_cluster_engine_gives_what_one_process_gives(engine, corpus, one_process, tmp_path):
    package = {"ray": "ray", "spark": "pyspark"}[engine]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; pip install 'sightline[{engine}]' to run this")
    sightline(*command(corpus, tmp_path), "--workers", 2, "--engine", engine)
    assert all_lines(tmp_path) == one_process


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_an_engine_that_is_not_installed_names_its_extra(engine, corpus, tmp_path):
    if importlib.util.find_spec({"ray": "ray", "spark": "pyspark"}[engine]) is not None:
        pytest.skip(f"{engine} is installed")
    _, words = sightline(*command(corpus, tmp_path), "--engine", engine, expect=1)
    assert f"[{engine}]" in words


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is not there")
@pytest.mark.parametrize("who", ["worker", "driver"])
def test_kills_lose_nothing(who, corpus, one_process, tmp_path):
    """Whatever is killed, and whenever, the next run completes exactly what is missing."""
    arguments = [sys.executable, "-m", "sightline", *map(str, command(corpus, tmp_path))]
    running = subprocess.Popen(
        [*arguments, "--workers", "2"], stderr=subprocess.DEVNULL, start_new_session=True
    )
    # After the first result, so that some shards are done and some are under way.
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*_stats.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.05))
    victims = children(running.pid) if who == "worker" else [running.pid]
    for victim in victims[:1]:
        with suppress(ProcessLookupError):  # it may have ended just then
            os.kill(victim, signal.SIGKILL)
    code = running.wait(timeout=120)
    if who == "worker":
        assert code == 0  # its shard was given to another one
    else:
        assert code == -signal.SIGKILL
        sightline(*command(corpus, tmp_path), "--workers", 2)
    assert all_lines(tmp_path) == one_process
    assert len(list(tmp_path.glob("*_stats.json"))) == 6
    assert not list(tmp_path.glob(".sightline-*"))


def test_a_model_that_cannot_be_opened_ends_the_run(corpus, tmp_path):
    shards, model, features = corpus
    work = link_work(str(model), features, LinkChoices())
    broken = type(work)(model=str(tmp_path), model_hash="", features=work.features)
    with pytest.raises(SightlineError, match="not a complete model folder"):
        list(processes.run(broken, find_shards([shards], tmp_path / "out"), 2))


def test_the_address_of_a_cluster_needs_an_engine(corpus, tmp_path):
    _, words = sightline(
        *command(corpus, tmp_path), "--workers", 1, "--engine-address", "x:1", expect=1
    )
    assert "--engine-address is for" in words
