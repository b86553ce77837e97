"""`sightline doctor`: what it finds here, and what it says where something is missing."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

import sightline
from sightline import doctor, machine
from sightline.commands.doctor import _lines
from sightline.doctor import Finding
from sightline.installed_packages import Package, install_command, installed_packages

PACKAGE = Path(sightline.__file__).parent


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "sightline", "doctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert "Traceback" not in done.stderr
    return done


def test_all_is_well_here_and_secrets_are_not_told():
    done = run("--json", SIGHTLINE_TOKEN="secret")
    assert done.returncode == 0, done.stdout
    report = orjson.loads(done.stdout)
    found = {one["what"]: one for one in report["findings"]}
    assert report["ok"] is True
    assert found["sightline"]["words"].startswith(sightline.__version__)
    assert "SIGHTLINE_TOKEN" in found["settings"]["words"] and "secret" not in done.stdout
    assert "numpy" in found["packages"]["words"] and "onnxruntime" in found["packages"]["words"]
    assert "efficientnet-lite0" in found["image network"]["words"]
    assert "links between" in found["linking"]["words"]
    for one in report["findings"]:
        assert one["status"] in ("ok", "lacking", "failed")
        assert one["words"]
        if one["what"].startswith("extra") and one["status"] == "lacking":
            name = one["what"].removeprefix("extra ")
            assert one["remedy"] == install_command(name)


@pytest.fixture
def damaged(tmp_path):
    """A copy of the package, to damage."""
    shutil.copytree(PACKAGE, tmp_path / "sightline", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "sightline"


def test_damaged_weights_end_with_1_and_say_what_to_do(damaged):
    file = damaged / "data" / "efficientnet-lite0.onnx"
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    file.write_bytes(content)
    (damaged / "data" / "default" / "vocabulary.json").unlink()
    done = run(PYTHONPATH=str(damaged.parent), NO_COLOR="1", PYTHONIOENCODING="utf-8")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("✗ image network: ") and "is damaged" in line for line in lines)
    assert any(line.startswith("✗ default model: ") for line in lines)
    assert any(line.startswith("✗ linking: ") for line in lines)
    assert "✓ temporary folder" in done.stdout


def test_torch_is_not_imported_for_its_version():
    code = "import sys; from sightline.doctor import examine; list(examine()); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "onnxruntime" in loaded and not loaded & {"torch", "numba", "pyarrow", "transformers"}


def test_lines_for_people(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    finding = Finding("extra serve", "lacking", "fastapi (not installed)", "pip install 'x[serve]'")
    assert _lines(finding).splitlines() == [
        "– extra serve: fastapi (not installed)",
        "    to change that: pip install 'x[serve]'",
    ]
    with Path(os.devnull).open("w", encoding="ascii") as narrow:
        monkeypatch.setattr(sys, "stdout", narrow)
        assert _lines(Finding("cores", "ok", "2")) == "ok cores: 2"


# ---- packages


REQUIREMENTS = [
    "numpy>=1.26",
    "orjson (>=3.10)",
    "no-such-package>=1",
    "torch>=999; extra == 'train'",
    'sightline[train]; extra == "reproduce"',
    "ray[data]>=2.40; python_version >= '3.11' and extra == 'ray'",
    "pytest; extra == 'dev'",
]


def test_packages_are_read_from_the_metadata():
    found = installed_packages(REQUIREMENTS)
    assert set(found) == {"", "train", "reproduce", "ray"}
    numpy, orjson_, absent = found[""]
    assert (numpy.name, numpy.least, numpy.is_missing) == ("numpy", "1.26", False)
    assert (orjson_.name, orjson_.least, orjson_.is_missing) == ("orjson", "3.10", False)
    assert absent.is_missing and str(absent) == "no-such-package (not installed)"
    assert [package.name for package in found["reproduce"]] == ["torch"]
    assert all(package.is_missing for package in found["train"])
    assert found["ray"][0].name == "ray"


def test_extras_that_name_each_other_end():
    found = installed_packages(
        ["sightline[b]; extra == 'a'", "sightline[a]; extra == 'b'", "numpy; extra == 'b'"]
    )
    assert [package.name for package in found["a"]] == ["numpy"]


@pytest.mark.parametrize(
    ("installed", "least", "missing"),
    [
        ("2.13.0+cpu", "2.6", False),
        ("2.5.9", "2.6", True),
        ("2.6", "2.6.0", False),
        ("10.0", "9.9", False),
        ("1.0rc1", "1.0", False),
        (None, "1", True),
        ("3", None, False),
    ],
)
def test_versions_are_compared_as_numbers(installed, least, missing):
    assert Package("x", least, installed).is_missing is missing


CLONE = {"editable": True}


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (None, "pip install 'sightline[serve]'"),
        ({"url": "CLONE", "dir_info": CLONE}, "pip install -e 'CLONE[serve]'"),
        ({"url": "CLONE", "dir_info": {}}, "pip install 'CLONE[serve]'"),
        (
            {"url": "file:///gone", "dir_info": {}},
            "in a clone of Sightline: pip install '.[serve]'",
        ),
        (
            {"url": "https://a.b/s.git", "vcs_info": {"vcs": "git"}},
            "pip install 'sightline[serve] @ git+https://a.b/s.git'",
        ),
    ],
)
def test_an_extra_comes_from_where_sightline_came_from(source, command, tmp_path, monkeypatch):
    record = tmp_path / "sightline-9.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Name: sightline\nVersion: 9\n")
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    if source:
        source = {**source, "url": source["url"].replace("CLONE", clone.as_uri())}
        (record / "direct_url.json").write_bytes(orjson.dumps(source))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert install_command("serve") == command.replace("CLONE", str(clone))
    monkeypatch.chdir(clone)
    assert install_command("serve") == command.replace("CLONE", ".")


def test_weights_are_compared_with_what_the_installation_recorded(tmp_path, monkeypatch):
    file = PACKAGE / "data" / "default" / "model.safetensors"
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
    record = tmp_path / "sightline-9.dist-info" / "RECORD"
    record.parent.mkdir()
    (record.parent / "METADATA").write_text("Name: sightline\nVersion: 9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = "sightline/data/default/model.safetensors,sha256={},1\n"
    record.write_text(entry.format(digest.rstrip("=")))
    assert doctor._is_as_installed(file) is True
    record.write_text(entry.format("A" * 43))
    assert doctor._is_as_installed(file) is False
    finding = doctor._default_model()
    assert finding.status == "failed" and "pip install --force-reinstall" in finding.remedy
    record.write_text("")
    assert doctor._is_as_installed(file) is None


# ---- the machine


def test_what_the_container_grants_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_CONTROL_GROUP", tmp_path)
    without = machine.usable_cores()
    assert without >= 1
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine.usable_cores() == 0.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.usable_cores() == without
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert machine.usable_memory() == 600_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.usable_memory() != 600_000


def test_little_memory_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "usable_memory", lambda: 10_000_000)
    cores, memory = doctor._cores_and_memory()
    assert cores.status == "ok" and memory.status == "lacking" and memory.remedy


@pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
def test_the_kernel_keeps_limits():
    assert machine.limits_that_hold() == {"memory", "time"}


def test_folders(tmp_path):
    assert machine.is_writable(tmp_path / "not" / "yet")
    (tmp_path / "file").write_text("")
    assert not machine.is_writable(tmp_path / "file")
