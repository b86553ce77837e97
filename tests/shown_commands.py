"""The commands and code that pages of the documentation show, run as a reader would run them.

A page is run from top to bottom in a folder of its own. Its fenced blocks mean:

- `sh`: run by bash, which stops at the first command that fails;
- `python`: run as a script;
- `diff`: applied to the files of the folder. `--- FILE` names one, `@@` stands between two places
  in it; the lines to find have to be there once;
- `text` after one of these: lines that it prints. Digits stand for any digits, so that a time or a
  score may change, and `...` for what is left out, a line of its own or the rest of one;
- any other language: not run.

A comment in the line before a block says more about it, `<!-- not run: reason -->` or
`<!-- fails -->`; `<!-- begins where PAGE ends -->` at the head of a page says with which files it
begins, and `<!-- begins in a clone -->` that it changes the source.

    python tests/shown_commands.py docs/howto/link.md

runs a page, prints what each of its blocks prints, and brings the numbers that it shows up to date.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from command_server import programs

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_FENCE = re.compile(
    r"^(?:<!-- (?P<comment>[^\n]*) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LANGUAGES = ("sh", "python", "diff")
_BEGINS = re.compile(r"<!-- begins where (\S+) ends -->")
_CLONE = "<!-- begins in a clone -->"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
#: What a clone needs to run and to be tested; the data of the package are large, and shared.
_CLONED = ("src/sightline", "tests", "pyproject.toml")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the comment in the line before it."""

    language: str
    body: str
    comment: str
    line: int

    @property
    def is_run(self) -> bool:
        return self.language in _LANGUAGES and not self.comment.startswith("not run")


def blocks(text):
    return [
        Block(
            found["language"],
            found["body"],
            found["comment"] or "",
            text[: found.start("language")].count("\n") + 1,
        )
        for found in _FENCE.finditer(text)
    ]


def printed_line(shown, printed):
    """The line of what was printed that a line of a `text` block stands for, or None."""
    if shown.strip() in ("", "..."):
        return shown
    for number, line in enumerate(printed):
        if shown.endswith("..."):
            start = _masked(shown.removesuffix("..."))
            if _masked(line).startswith(start):
                printed.pop(number)
                # As many words as were shown.
                words = re.match(r"\s*" + r"\S+\s*" * len(start.split()), line)[0]
                return f"{words.rstrip()} ..." if shown.endswith(" ...") else shown
        elif _masked(line) == _masked(shown):
            return printed.pop(number)
    return None


def _masked(line):
    # A p-value below what is shown of it is a number too.
    return re.sub(r"(?:< )?\d+", "0", " ".join(line.split()))


class Pages:
    """Runs pages; one that begins where another ends gets a copy of what that one left."""

    def __init__(self, folder, programs):
        self._folder = folder
        self._programs = programs
        self._finished = {}

    def finished(self, page, show=None):
        """Run a page, once, and give the folder that it leaves.

        `show` gets what each block prints, and the page is brought up to date.
        """
        page = page.resolve()
        if page not in self._finished:
            folder = self._folder / f"{len(self._finished)}-{page.stem}"
            text = page.read_text()
            begins = _BEGINS.search(text)
            if begins:
                shutil.copytree(self.finished(page.parent / begins[1]), folder)
            else:
                folder.mkdir()
            if _CLONE in text:
                _clone(folder)
            for shown, current in self._run(page, text, folder, show):
                if show:
                    text = text.replace(shown.body, current, 1)
                    page.write_text(text)
            self._finished[page] = folder
        return self._finished[page]

    def _run(self, page, text, folder, show):
        """Run the blocks of a page; yields those that show what was printed, and what it is."""
        printed = None  # by the block before, if it was run
        environment = self._environment(folder if _CLONE in text else None)
        for block in blocks(text):
            place = f"{page.relative_to(ROOT)}:{block.line}"
            if block.is_run:
                code, printed = run_block(block, folder, environment)
                if show:
                    show(f"--- {place}, exit {code}\n{printed}")
                assert "Traceback" not in printed, f"{place}\n{printed[-1500:]}"
                assert (code != 0) == (block.comment == "fails"), f"{place}\n{printed}"
            elif block.language in _LANGUAGES:
                printed = None
            elif block.language == "text" and printed is not None:
                there = printed.splitlines()
                lines = [(line, printed_line(line, there)) for line in block.body.splitlines()]
                gone = [line for line, found in lines if found is None]
                assert not gone or show, f"{place} shows {gone}, but there is only\n{printed}"
                yield block, "".join(f"{found or line}\n" for line, found in lines)

    def _environment(self, clone):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {name: value for name, value in os.environ.items() if "SIGHTLINE" not in name}
        environment = {**own, "COLUMNS": "100", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
        if clone is None:
            return {**environment, "PATH": f"{self._programs}{os.pathsep}{path}"}
        return {**environment, "PATH": path, "PYTHONPATH": str(clone / "src")}


def run_block(block, folder, environment):
    """Run a block; gives its exit code, and what it said and printed on a terminal."""
    if block.language == "diff":
        return 0, apply_diff(block.body, folder)
    # Python is looked for in this process's PATH unless it is named whole.
    python = shutil.which("python", path=environment["PATH"])
    command = ["bash", "-euo", "pipefail"] if block.language == "sh" else [python]
    command += ["-c", block.body]
    printed = bytearray()
    reading, writing = pty.openpty()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=said,
        )
        os.close(writing)
        reader = threading.Thread(target=_read, args=(reading, printed))
        reader.start()
        process.wait()
        reader.join()
        said.seek(0)
        words = said.read().decode()
    text = words + printed.decode().replace("\r\n", "\n")
    return process.returncode, _STYLES.sub("", text)


def apply_diff(diff, folder):
    """Change files as a diff without line numbers says; gives the names of the files."""
    names = []
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, _, changes = part.partition("\n")
        text = (folder / name).read_text()
        for change in re.split(r"^@@\n", changes, flags=re.MULTILINE):
            lines = change.splitlines(keepends=True)
            old = "".join(line[1:] or line for line in lines if line[0] != "+")
            new = "".join(line[1:] or line for line in lines if line[0] != "-")
            assert text.count(old) == 1, f"{name} has {text.count(old)} times\n{old}"
            text = text.replace(old, new)
        (folder / name).write_text(text)
        names.append(name)
    return "\n".join(names)


def _read(terminal, into):
    try:
        while data := os.read(terminal, 2**16):
            into.extend(data)
    except OSError:  # how a terminal ends on Linux
        pass
    finally:
        os.close(terminal)


def _clone(folder):
    for name in _CLONED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            # What is compiled comes along, but for what another process is about to write.
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.pyc.*", "data"))
        else:
            shutil.copy(source, target)
    (folder / "src/sightline/data").symlink_to(ROOT / "src/sightline/data")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        runner = Pages(Path(place), programs())
        for name in sys.argv[1:]:
            runner.finished(Path(name), lambda words: sys.stdout.write(f"{words}\n"))
