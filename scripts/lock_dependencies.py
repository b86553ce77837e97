"""Write `locks/*.txt`: every file that `make` may install, by its hash.

Versions are resolved by pip within `constraints.txt`. The hashes are those that PyPI lists for the
wheels of Python 3.11 on Linux x86_64. torch has two files of its own: the build without CUDA that
pip finds where this is run, if it does, and PyPI's. Run it after a change of the dependencies,
from the root of the repository, with `packaging` at hand; names of locks write those alone:

    python scripts/lock_dependencies.py [NAME...]
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from packaging.tags import cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

LOCKS = {"core": ".", "docs": ".[docs]", "train": ".[train]", "dev": ".[dev]"}
# What builds the package itself, which is installed without an environment of its own for that.
BUILD = ("hatchling", "editables")
INDEX = "https://pypi.org/simple"
_FILE = re.compile(r'<a href="[^"#]*/([^"#/]+\.whl)#sha256=([0-9a-f]{64})"')
_HEAD = """\
# Made by scripts/lock_dependencies.py; make uses it (docs/security.md).
"""


def main() -> None:
    """Write the locks; most are subsets of the largest, which is resolved first."""
    known: dict[tuple[str, str], set[str]] = {}
    for name, requirement in reversed(LOCKS.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        lines = [_HEAD]
        found = _resolve(requirement)
        for package, version, hash_ in found:
            if (package, version) not in known:
                known[package, version] = _index_hashes(package, version)
            hashes = known[package, version]
            if package != "torch":
                lines.append(_entry(package, version, {hash_, *hashes}))
                continue
            _write("torch-pypi", [_HEAD, _entry(package, version, hashes)])
            if hash_ not in hashes:
                _write("torch-cpu", [_HEAD, _entry(package, version, {hash_})])
        _write(name, lines)


def _entry(package: str, version: str, hashes: set[str]) -> str:
    listed = "".join(f" \\\n    --hash=sha256:{hash_}" for hash_ in sorted(hashes))
    return f"{package}=={version}{listed}\n"


def _write(name: str, lines: list[str]) -> None:
    Path(f"locks/{name}.txt").write_text("".join(lines))
    print(f"locks/{name}.txt: {len(lines) - 1} packages")


def _resolve(requirement: str) -> list[tuple[str, str, str]]:
    """Give name, version and hash of the file for each package that a requirement needs."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
               "--only-binary", ":all:", "-c", "constraints.txt", "-e", requirement,
               *BUILD]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        subprocess.run([*command, "--report", str(report)], check=True)
        installed = json.loads(report.read_text())["install"]
    found = []
    for item in installed:
        name, version = canonicalize_name(item["metadata"]["name"]), item["metadata"]["version"]
        if name != "sightline":
            hash_ = item["download_info"]["archive_info"]["hashes"]["sha256"]
            found.append((name, version.partition("+")[0], hash_))
    return sorted(found)


def _index_hashes(package: str, version: str) -> set[str]:
    """Give the hashes of a release's wheels that Python 3.11 on Linux x86_64 can use."""
    with urllib.request.urlopen(f"{INDEX}/{package}/", timeout=60) as answer:
        files = _FILE.findall(html.unescape(answer.read().decode()))
    pairs = {(tag.interpreter, tag.abi) for tag in cpython_tags((3, 11), platforms=["any"])}
    hashes = set()
    for name, hash_ in files:
        try:
            _, found, _, tags = parse_wheel_filename(name)
        except ValueError:  # names of old releases
            continue
        if str(found) == version and any(
            ((tag.interpreter, tag.abi) in pairs or tag.interpreter.startswith("py3"))
            and (tag.platform == "any" or re.search(r"linux.*x86_64", tag.platform))
            for tag in tags
        ):
            hashes.add(hash_)
    return hashes


if __name__ == "__main__":
    main()
