"""Progress: silent for short work, plain lines in a file, a rewritten line on a terminal."""

import io

import pytest

from sightline import progress
from sightline.progress import Progress, counted, duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_duration(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ["image"], "0 images"),
        (1, ["image"], "1 image"),
        (2000, ["image"], "2,000 images"),
        (1, ["record was", "records were"], "1 record was"),
        (2, ["record was", "records were"], "2 records were"),
    ],
)
def test_numbers_of_things(number, words, expected):
    assert counted(number, *words) == expected


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(monkeypatch, stream, seconds_a_step, steps=10):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress("reading", steps, "documents", stream) as bar:
        for _ in range(steps):
            now[0] += seconds_a_step
            bar.advance(1, "loss 0.5")
    return stream.getvalue()


def test_short_work_says_nothing(monkeypatch):
    assert run(monkeypatch, io.StringIO(), 0.1) == ""


def test_long_work_says_rate_and_time_left_in_plain_lines(monkeypatch):
    lines = run(monkeypatch, io.StringIO(), 10.0).splitlines()
    assert lines[4] == "reading:  50 %, 0.1 documents/s, loss 0.5, 50 s left"
    assert len(lines) == 10


def test_plain_lines_are_few(monkeypatch):
    assert len(run(monkeypatch, io.StringIO(), 0.5, steps=100).splitlines()) == 5


def test_a_terminal_gets_one_line_that_is_cleared_at_the_end(monkeypatch):
    shown = run(monkeypatch, Terminal(), 1.0)
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[K")
