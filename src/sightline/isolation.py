"""Files that nobody vouches for are parsed in a child process, under limits that the kernel keeps.

The child is a plain interpreter that imports one reader. It answers with JSON and the raw bytes of
the images, which are checked and never unpickled. What crashes, hangs or swells a parser costs the
child alone, and the user gets a sentence. Pages so small that they cannot take long are parsed
without one, which takes a tenth of the time.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sightline.choices import ContainerKind
from sightline.pages import Page
from sightline.problems import SightlineError
from sightline.readers.contents import MAX_BLOCKS, MAX_IMAGE_BYTES, Contents

#: What a child process reads.
_Kind = ContainerKind | Literal["page"]


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What reading one file may cost."""

    # CPU time. Readers stop at four fifths of it by themselves and count what they did not come to;
    # the kernel stops those that do not. With what the caller does, it is ten seconds for a file.
    seconds: float = 7.5
    # By the clock, only for what waits without working: with 30 processes on 2 cores, books that
    # take 2 s of CPU time took 100 s (measured), and are to be read.
    wall_seconds: float = 600.0
    # Address space of the child.
    memory_bytes: int = 1_000_000_000
    # Of the file itself.
    file_bytes: int = 512 * 2**20


DEFAULT_LIMITS = ReadingLimits()

# As in `decode_pool`: not multiprocessing, which would run the caller's main module once more.
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from sightline.isolation import _serve
_serve(json.loads(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4])
"""
_SHARE_FOR_THE_READER = 0.8
_LENGTH = struct.Struct("<Q")
_MAX_ANSWER = 256 * 2**20  # of JSON: far more than the text of any book
_OUT_OF_MEMORY = 77  # an exit code that nothing else has
#: Bytes of a page that is read in this process. Whatever is in it takes at most 3 s of
#: CPU time and 150 MB, split into sentences too (`checks/slow_pages.py`, at these sizes).
_SMALL_MARKDOWN, _SMALL_PAGE = 2**14, 2**19
# Of a page: looking for the file of each takes the caller 0.1 ms, so that 100,000 on a page of 2 MB
# took 17 s in all (measured).
_MAX_IMAGES = 5_000


def read_page_bounded(path: Path, limits: ReadingLimits = DEFAULT_LIMITS) -> Contents:
    """Read an HTML, Markdown or text file; raises `SightlineError` that names it."""
    from sightline.readers.page_folder import is_markdown, read_page

    most = _SMALL_MARKDOWN if is_markdown(path) else _SMALL_PAGE
    try:
        # A folder or a pipe is refused by the reader.
        is_small = not path.is_file() or path.stat().st_size <= most
    except OSError as error:
        raise SightlineError(f"{path}: cannot be read: {error.strerror}.") from error
    if not is_small:
        return read_contents(path, "page", limits)
    started = time.thread_time()
    try:
        page = read_page(path)
    except SightlineError as error:
        raise SightlineError(f"{path}: {error}") from error
    return Contents(_within_limits(page), seconds=time.thread_time() - started)


def read_contents(path: Path, kind: _Kind, limits: ReadingLimits = DEFAULT_LIMITS) -> Contents:
    """Read a file in a child process; raises `SightlineError` that names it."""
    try:
        status = path.stat()
    except OSError as error:
        raise SightlineError(f"{path}: cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
        raise SightlineError(f"{path}: is not a regular file.")
    if not os.access(path, os.R_OK):
        raise SightlineError(f"{path}: cannot be read: Permission denied.")
    if status.st_size > limits.file_bytes:
        most = limits.file_bytes // 2**20
        raise SightlineError(f"{path}: is larger than {most} MiB, the limit; split it into parts.")
    absolute = str(path.absolute()).encode("utf-8", "surrogateescape").hex()
    arguments = [json.dumps(sys.path), json.dumps(kind), json.dumps(asdict(limits)), absolute]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # PDFium prints to it what it thinks of a file.
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    try:
        contents = _receive(process)
    finally:
        # One that is dying closes its pipe a moment before it has a code.
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if isinstance(contents, Contents):
        return contents
    reason = contents if contents is not None else _ending(process.returncode, limits)
    raise SightlineError(f"{path}: {reason}")


def _receive(process: subprocess.Popen[bytes]) -> Contents | str | None:
    """Take the answer: contents, or what the reader said is wrong; None if it is no answer.

    A hostile file might have turned the child against us: nothing is taken on trust.
    """
    import msgspec

    stream = process.stdout
    assert stream is not None

    def take(most: int) -> bytes:
        length = stream.read(_LENGTH.size)
        if len(length) < _LENGTH.size or _LENGTH.unpack(length)[0] > most:
            raise EOFError
        data = stream.read(_LENGTH.unpack(length)[0])
        if len(data) < _LENGTH.unpack(length)[0]:
            raise EOFError
        return data

    try:
        header = take(_MAX_ANSWER)
        started = time.thread_time()
        answer = json.loads(header)
        del header
        if "error" in answer:
            return str(answer["error"])[:1000]
        seconds = float(answer["seconds"])
        names, page = answer["files"], msgspec.convert(answer["page"], Page, dec_hook=counter_of)
        del answer
        seconds += time.thread_time() - started
        files: dict[str, bytes] = {}
        remaining = MAX_IMAGE_BYTES
        for name in names:
            files[str(name)] = take(remaining)
            remaining -= len(files[str(name)])
    except (EOFError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return Contents(page, files, seconds) if _is_sound(page) else None


def counter_of(kind: Any, value: Any) -> Any:
    """Counters are the only part of a page that msgspec does not build by itself."""
    if getattr(kind, "__origin__", kind) is not Counter or not isinstance(value, dict):
        raise TypeError(f"expected the counts of a {kind}")  # msgspec makes it a ValidationError
    return Counter({str(reason): int(count) for reason, count in value.items()})


def _is_sound(page: Page) -> bool:
    """Say whether all indexes of a page are within it."""
    sizes = [len(block.text) for block in page.blocks]
    return all(
        -1 <= image.block < len(sizes)
        and (image.offset is None or 0 <= image.offset <= sizes[image.block])
        and (image.block >= 0 or image.offset is None)
        and all(0 <= block < len(sizes) for block in image.caption_blocks)
        for image in page.images
    )


def _within_limits(page: Page) -> Page:
    """Count the blocks and images beyond the limits as left out."""
    blocks, images = page.blocks[:MAX_BLOCKS], page.images
    if len(blocks) < len(page.blocks):
        surplus = sum(len(block.text) for block in page.blocks[MAX_BLOCKS:])
        page.left_out.text["beyond the limits"] += surplus
        images = tuple(i for i in images if max(i.block, *i.caption_blocks, -1) < MAX_BLOCKS)
    images = images[:_MAX_IMAGES]
    if len(images) < len(page.images):
        page.left_out.images["beyond the limits"] += len(page.images) - len(images)
    return replace(page, blocks=blocks, images=images)


def _ending(code: int, limits: ReadingLimits) -> str:
    """Say why there is no answer."""
    posix = sys.platform != "win32"
    if posix and code == -signal.SIGALRM:
        most = f"{limits.wall_seconds:g} s"
        return f"reading it takes longer than {most}; try again when the machine is less busy."
    if posix and code in (-signal.SIGPROF, -signal.SIGXCPU):
        return (
            f"reading it takes longer than {limits.seconds:g} s of CPU time, the limit; split it "
            "into parts, or save it anew with the program that made it."
        )
    if code == _OUT_OF_MEMORY or (posix and code == -signal.SIGKILL):
        most = f"{limits.memory_bytes / 1e9:g} GB"
        return f"reading it takes more memory than {most}, the limit; split it into parts."
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return (
        f"it makes its reader crash ({how}): the file is damaged or hostile. If it opens in the "
        "program that made it, save it anew there."
    )


def _serve(kind: _Kind, limits_dict: dict[str, float], encoded_path: str) -> None:
    """Be the child: read one file, answer, end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    limits = ReadingLimits(**limits_dict)  # type: ignore[arg-type]
    path = Path(bytes.fromhex(encoded_path).decode("utf-8", "surrogateescape"))
    _confine(limits)
    try:
        contents = _read(path, kind, limits.seconds * _SHARE_FOR_THE_READER)
        page = _within_limits(contents.page)
        answer = {"page": _page_record(page), "files": list(contents.files)}
        # As it is, a character takes up to 4 bytes; escaped, 12.
        header = json.dumps(answer | {"seconds": time.process_time()}, ensure_ascii=False)
        parts = [header.encode("utf-8", "surrogatepass"), *contents.files.values()]
    except SightlineError as error:
        parts = [json.dumps({"error": str(error)}).encode()]
    except MemoryError:
        os._exit(_OUT_OF_MEMORY)
    for part in parts:
        answers.write(_LENGTH.pack(len(part)))
        answers.write(part)
    answers.flush()
    os._exit(0)  # tearing down half-read files may crash PDFium, and nobody needs it


def _read(path: Path, kind: _Kind, seconds: float) -> Contents:
    if kind == "pdf":
        from sightline.readers.pdf import read_pdf

        return read_pdf(path, seconds=seconds)
    if kind == "docx":
        from sightline.readers.docx import read_docx

        return read_docx(path, seconds=seconds)
    if kind == "page":
        from sightline.readers.page_folder import read_page

        return Contents(read_page(path))
    from sightline.readers.epub import read_epub

    return read_epub(path, seconds=seconds)


def _page_record(page: Page) -> dict[str, Any]:
    import msgspec

    record: dict[str, Any] = msgspec.to_builtins(page)
    return record


def _confine(limits: ReadingLimits) -> None:
    """Limit the memory and time of this process, where the system can (not Windows)."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
        signal.setitimer(signal.ITIMER_REAL, limits.wall_seconds)
