"""Which packages Sightline asks for, which of them are installed, and what each extra lacks.

All of it is read from the metadata of installed packages; nothing is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[\w,\s.-]*)\])?\s*\(?(?P<versions>[^;()]*)\)?"
    r"(?:;(?P<marker>.*))?"
)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")
_OWN_NAME = "sightline"
#: Extras of those who work on Sightline itself.
_FOR_DEVELOPERS = {"benchmarks", "dev", "docs"}


@dataclass(frozen=True, slots=True)
class Package:
    """A package that is asked for, and what is installed of it."""

    name: str
    #: The lowest version that will do, where one is told.
    least: str | None
    installed: str | None

    @property
    def is_missing(self) -> bool:
        """Whether it is not installed, or is too old."""
        if self.installed is None:
            return True
        return self.least is not None and _release(self.installed) < _release(self.least)

    def __str__(self) -> str:
        if self.installed is None:
            return f"{self.name} (not installed)"
        old = f" (too old, {self.least} is asked for)" if self.is_missing else ""
        return f"{self.name} {self.installed}{old}"


def installed_packages(requirements: Iterable[str] | None = None) -> dict[str, list[Package]]:
    """The packages by the extra that asks for them, under "" those that are always needed.

    `requirements` are lines such as `torch>=2.6; extra == 'train'`; by default those of the
    installed Sightline, or none where it runs without having been installed.
    """
    if requirements is None:
        try:
            requirements = metadata.requires(_OWN_NAME) or []
        except metadata.PackageNotFoundError:
            requirements = []
    asked: dict[str, list[re.Match[str]]] = {"": []}
    for line in requirements:
        found = _REQUIREMENT.fullmatch(line.strip())
        if found is not None:
            extra = _EXTRA.search(found["marker"] or "")
            asked.setdefault(extra[1] if extra else "", []).append(found)
    return {
        extra: list(_packages(asked, extra, set()).values())
        for extra in asked
        if extra not in _FOR_DEVELOPERS
    }


def _packages(
    asked: dict[str, list[re.Match[str]]], extra: str, seen: set[str]
) -> dict[str, Package]:
    """The packages of an extra, with those of the extras that it names: sightline[train]."""
    packages: dict[str, Package] = {}
    if extra in seen:
        return packages
    for found in asked.get(extra, []):
        if found["name"].lower() == _OWN_NAME:
            for other in (found["extras"] or "").split(","):
                packages |= _packages(asked, other.strip(), {*seen, extra})
        else:
            least = re.search(r"[>=]=\s*([\w.]+)", found["versions"])
            version = _installed_version(found["name"])
            packages[found["name"]] = Package(found["name"], least[1] if least else None, version)
    return packages


def _installed_version(name: str) -> str | None:
    """The version of a package, without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


_PINS = "constraints.txt"


def install_command(extra: str = "") -> str:
    """The command that installs Sightline with an extra, from where it was installed before."""
    extras = f"[{extra}]" if extra else ""
    source = _source()
    if source.get("dir_info") is None:
        address = source.get("url")
        if "vcs_info" in source:
            address = f"{source['vcs_info']['vcs']}+{address}"
        return f"pip install {quote(_OWN_NAME + extras + (f' @ {address}' if address else ''))}"
    folder = Path(url2pathname(urlsplit(source["url"]).path))
    editable = "-e " if source["dir_info"].get("editable") else ""
    if not (folder / "pyproject.toml").is_file():
        return f"in a clone of Sightline: pip install {quote(f'.{extras}')}"
    place = "." if folder == Path.cwd() else str(folder)
    # Without it, pip would take a newer torch with gigabytes for GPUs.
    pins = Path() if place == "." else folder
    pinned = f"-c {quote(str(pins / _PINS))} " if extra and (folder / _PINS).is_file() else ""
    return f"pip install {pinned}{editable}{quote(place + extras)}"


def _source() -> dict[str, Any]:
    """Where Sightline was installed from, as pip records it; nothing of a package index."""
    try:
        found = metadata.distribution(_OWN_NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # a clone that runs without having been installed
        clone = Path(__file__).parents[2]
        return {"url": clone.as_uri(), "dir_info": {"editable": True}}
    source = json.loads(found) if found else {}
    return source if isinstance(source, dict) else {}


def recorded_hash(path: str) -> str | None:
    """The sha256 of a file of Sightline, in base64, as the installation recorded it.

    An editable installation records none.
    """
    try:
        files = metadata.files(_OWN_NAME) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if str(file) == path and file.hash is not None and file.hash.mode == "sha256":
            return file.hash.value
    return None


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version: 2.13.0+cpu as (2, 13)."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in numbers[0].split(".")] if numbers else [0]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
