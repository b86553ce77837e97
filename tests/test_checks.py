"""The checks that run for minutes by hand, each for a moment; and that each of them can fail."""

import importlib.util
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they fork, kill and limit")

CHECKS = Path(__file__).parents[1] / "checks"


def check(name, *arguments, expect=0):
    """Run a check; gives what it prints."""
    command = [sys.executable, "-W", "ignore", str(CHECKS / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def loaded(name, monkeypatch):
    monkeypatch.syspath_prepend(str(CHECKS))
    specification = importlib.util.spec_from_file_location(name, CHECKS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_runs_that_are_killed_at_random_end_in_the_same_files(tmp_path):
    pytest.importorskip("torch")
    # The other kinds take longer: `test_training` and `test_engines` kill those.
    said = check("random_kills", tmp_path / "work", "features", "--times", 1, "--seed", 3)
    assert "features: 1 kills" in said and ", 0 bad," in said
    assert "5 files cut, 0 not seen" in said


def test_the_comparison_after_kills_sees_what_is_cut_or_left_over(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    kills = loaded("random_kills", monkeypatch)
    (tmp_path / "log.jsonl").write_text('{"epoch": 1, "seconds": 2}\n')
    (tmp_path / "model").write_bytes(b"abc")
    expected = kills.result(tmp_path)
    (tmp_path / "log.jsonl").write_text('{"epoch": 1, "seconds": 3}\n')
    assert kills.differences(tmp_path, expected) == []
    (tmp_path / "log.jsonl").write_text('{"epoch": 2, "seconds": 2}\n')
    (tmp_path / ".sightline-1.tmp").write_bytes(b"")
    (tmp_path / "model").write_bytes(b"ab")
    assert kills.differences(tmp_path, expected) == [".sightline-1.tmp", "log.jsonl", "model"]


def test_fuzzing_finds_what_is_planted_and_nothing_in_ours(tmp_path):
    options = ("--seconds", 1, "--keep", tmp_path, "--engine", "hypothesis")
    said = check("fuzz_parsers", "--plant", *options, expect=1)
    assert "ZeroDivisionError: planted" in said
    said = check("fuzz_parsers", "native", *options)
    assert "0 findings" in said
    assert json.loads((tmp_path / "native/hypothesis/counts.json").read_text())["calls"] >= 300


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_every_target_of_fuzzing_takes_its_seeds(tmp_path, monkeypatch):
    """A rule that a sound input breaks would be a finding each time."""
    from sightline.problems import SightlineError

    targets = loaded("fuzz_parsers", monkeypatch).targets()
    assert len(targets) > 25
    for name, (call, seeds) in targets.items():
        (tmp_path / name).mkdir()
        for seed in seeds():
            call(seed, tmp_path / name)
            for damaged in (b"", seed[: len(seed) // 2], seed.replace(b"a", b"\xff"), seed * 2):
                with suppress(SightlineError):
                    call(damaged, tmp_path / name)


def test_json_of_all_kinds_in_all_places(tmp_path):
    files = {
        "y_a": b"[1]",
        "n_a": b"[1,]",
        "n_b": b"{" * 5000,
        "i_a": b'["\\ud800"]',
        "n_c": b"NaN",
    }
    for name, data in files.items():
        (tmp_path / f"{name}.json").write_bytes(data)
    assert "5 files in 13 places each: 0 findings" in check("hostile_json", tmp_path)
    # The control: sound files under the name of bad ones.
    (tmp_path / "n_d.json").write_bytes(b'{"a": 0}')
    assert "what is no JSON was read" in check("hostile_json", tmp_path, expect=1)


def test_ways_to_a_private_address(monkeypatch):
    addresses = loaded("private_addresses", monkeypatch)
    attempts = addresses.all_urls(1)
    assert len(attempts) > 2_500 and len(addresses.IPV4) > 15
    checked = addresses.Check(shown=False)
    monkeypatch.setattr(
        addresses.fetching.socket, "getaddrinfo", addresses.Names(addresses.socket.getaddrinfo)
    )
    monkeypatch.setattr(addresses.fetching.socket, "create_connection", checked.connect)
    for url in addresses.all_urls(checked.port)[::20]:
        checked.attempt(url)
    assert (checked.tried > 130, checked.escaped) == (True, 0)
    # The control: a fetcher that allows all does reach the door, and that is seen.
    checked.attempt(f"http://127.1:{checked.port}/a.png", lambda _: True)
    assert checked.escaped == 1


def test_damaged_files_are_the_same_each_time(tmp_path):
    options = ("--images", 120, "--pdfs", 3, "--containers", 4, "--page-sizes", "0.001")
    for name in ("a", "b"):
        check("damaged_files", tmp_path / name, *options)
    found = [
        {path.name: path.read_bytes() for path in (tmp_path / name / "images").iterdir()}
        for name in ("a", "b")
    ]
    assert len(found[0]) == 120
    assert len({Path(name).suffix for name in found[0]}) > 10
    dated = (".avif",)
    assert [k for k in found[0] if found[0][k] != found[1][k] and not k.endswith(dated)] == []
    assert len(list((tmp_path / "a" / "pages").iterdir())) > 100


def test_uploads_are_answered_and_a_service_that_ends_is_seen(tmp_path):
    pytest.importorskip("fastapi")
    files = {"a.html": b"<p>A dog runs.", "b.pdf": b"%PDF-1.4 cut", "c.png": b"\x89PNG\r\n\x1a\n",
             "d.docx": b"PK\x03\x04", "e.md": b"\xff\xfe", "f.gif": b""}  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    said = check("uploaded_files", tmp_path, "--plant", expect=1)
    assert "6 files in 5 uploads" in said
    assert [f"upload {number} " in said for number in range(5)] == [False, False, True, True, True]
    assert "the service does not answer any more" in said
