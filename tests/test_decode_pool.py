"""Isolation: a worker that crashes, hangs, swells or is killed costs at most its own image."""

import io
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from sightline import decode_pool
from sightline.decode_pool import DecodePool
from sightline.images import Limits, Status, decode
from sightline.problems import SightlineError

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# A worker in which some contents do what a broken decoder might.
MISCHIEF = decode_pool._PROGRAM.replace(
    "serve(",
    """import os, signal, time
from sightline import decode_worker
proper = decode_worker.decode
def mischievous(source, *arguments):
    if not isinstance(source, bytes) and not source.suffix: source = source.name.encode()
    if source == b"segfault": os.kill(os.getpid(), signal.SIGSEGV)
    if source == b"killed": os.kill(os.getpid(), signal.SIGKILL)
    if source == b"exit": os._exit(7)
    if source == b"sleep": time.sleep(60)
    if source == b"spin":
        while True: pass
    if source == b"print": print("noise", flush=True); os.write(1, b"noise")
    if source == b"nonsense":
        class Nonsense: pack = staticmethod(lambda *_: b"\\xff" * 13)
        decode_worker.ANSWER = Nonsense
    if source == b"error": raise ValueError
    return proper(source, *arguments)
decode_worker.decode = mischievous
serve(""",
)


def picture(number, size=(24, 16)):
    stream = io.BytesIO()
    colour = (number % 256, number // 256, 7)
    Image.new("RGB", size, colour).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def numbers(results):
    """Give the number each picture was made of, or the status of one that failed."""
    return [
        result.status if result.pixels is None else int(result.pixels[0, 0, :2] @ [1, 256])
        for result in results
    ]


def running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def pids(pool):
    return [worker.process.pid for worker in pool._alive]


@pytest.fixture(scope="module")
def slow():
    """A PNG of 49 million pixels, which takes half a second to decode."""
    return picture(5, (7000, 7000))


def test_the_pool_gives_what_decode_gives_in_order(tmp_path):
    sources = []
    for number in range(60):
        path = tmp_path / f"{number}.png"
        # Sizes differ, so that later images are ready before earlier ones.
        path.write_bytes(picture(number, (900, 900) if number % 7 == 0 else (30, 20)))
        sources.append(path if number % 2 else path.read_bytes())
    sources[10:10] = [b"", tmp_path / "missing", tmp_path, b"%PDF", sources[3].read_bytes()[:50]]
    with DecodePool(2) as pool:
        for side in (None, 16):
            results = list(pool.decode_many(iter(sources), side))
            assert len(results) == len(sources)
            for source, result in zip(sources, results, strict=True):
                expected = decode(source, side)
                assert (result.status, result.reason) == (expected.status, expected.reason)
                assert np.array_equal(result.pixels, expected.pixels)
        assert list(pool.decode_many([])) == []


def test_the_interpolation_reaches_the_workers():
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "PNG")
    with DecodePool(1) as pool:
        for name in ("bilinear", "bicubic", "lanczos"):
            (result,) = pool.decode_many([stream.getvalue()], 20, name)
            expected = decode(stream.getvalue(), 20, interpolation=name).pixels
            assert np.array_equal(result.pixels, expected)


def test_relative_and_impossible_paths(tmp_path, monkeypatch):
    with DecodePool(1) as pool:
        assert numbers(pool.decode_many([picture(0)])) == [0]
        monkeypatch.chdir(tmp_path)  # after the worker has started elsewhere
        Path("ä.png").write_bytes(picture(9))
        Path(os.fsdecode(b"\xff.png")).write_bytes(picture(8))
        paths = [Path("ä.png"), Path(os.fsdecode(b"\xff.png")), Path("a\0b"), Path("\ud800")]
        assert numbers(pool.decode_many(paths)) == [9, 8, Status.missing, Status.missing]


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (b"segfault", Status.undecodable, "crash (signal 11)"),
        (b"exit", Status.undecodable, "crash (exit code 7)"),
        (b"error", Status.undecodable, "crash (exit code 1)"),
        (b"killed", Status.too_large, "memory"),
        (b"spin", Status.timeout, "CPU time"),
        (b"sleep", Status.timeout, "longer than 1 s."),
        (b"nonsense", Status.undecodable, "nonsense"),
        (b"print", Status.undecodable, "not that of any known image format"),
    ],
)
def test_a_worker_that_fails_costs_one_image(monkeypatch, content, status, reason):
    monkeypatch.setattr(decode_pool, "_PROGRAM", MISCHIEF)
    sources = [picture(number) for number in range(8)]
    sources[3] = content
    # By the clock ten times as long: time to fail, or to spin, however busy the machine is.
    seconds = {b"sleep": 0.1, b"spin": 1}.get(content, 10)
    with DecodePool(2, Limits(seconds=seconds)) as pool:
        results = list(pool.decode_many(sources))
    assert numbers(results) == [0, 1, 2, status, 4, 5, 6, 7]
    assert reason in results[3].reason


@pytest.mark.parametrize("name", ["segfault", "exit", "killed", "sleep", "nonsense"])
def test_files_decoded_together_do_not_share_their_fate(monkeypatch, tmp_path, name):
    monkeypatch.setattr(decode_pool, "_PROGRAM", MISCHIEF)
    paths = [tmp_path / f"{number}.png" for number in range(9)]
    for number, path in enumerate(paths):
        path.write_bytes(picture(number))
    paths[5] = tmp_path / name
    with DecodePool(1, Limits(seconds=0.2), together=4) as pool:
        results = list(pool.decode_many(paths))
    bad = results[5].status
    assert bad in (Status.undecodable, Status.too_large, Status.timeout)
    assert numbers(results) == [0, 1, 2, 3, 4, bad, 6, 7, 8]


@pytest.mark.parametrize("shared", [True, False])
def test_pixels_come_back_whole_whatever_way_they_take(monkeypatch, tmp_path, shared):
    """Some images do not fit into the shared memory at all, some not beside the others."""
    if not shared:
        monkeypatch.setattr(decode_pool, "shared_memory", lambda: -1)
    paths = []
    rng = np.random.default_rng(0)
    for number, side in enumerate([40, 1000, 30, 1300, 20, 1000, 10, 600]):
        pixels = rng.integers(0, 256, (side, side + number, 3), dtype=np.uint8)
        paths.append(tmp_path / f"{number}.bmp")
        Image.fromarray(pixels).save(paths[-1])
    paths.insert(3, tmp_path / "missing.bmp")
    with DecodePool(1, together=4) as pool:
        found = list(pool.decode_many(paths))
    assert len(found) == 9
    for path, result in zip(paths, found, strict=True):
        expected = decode(path)
        assert result.status is expected.status
        np.testing.assert_array_equal(result.pixels, expected.pixels)


@linux
def test_a_worker_cannot_take_the_shared_memory_away():
    descriptor = decode_pool.shared_memory()
    assert len(decode_pool.map_shared(descriptor)) > 0
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, 0)
    os.close(descriptor)


def test_a_slow_image_is_stopped(slow):
    with DecodePool(2, Limits(seconds=0.1)) as pool:
        start = time.monotonic()
        results = list(pool.decode_many([picture(1), slow, picture(2), slow, picture(3)]))
        assert time.monotonic() - start < 10
    assert numbers(results) == [1, Status.timeout, 2, Status.timeout, 3]
    assert results[1].reason == "Decoding takes longer than 0.1 s of CPU time."


def test_an_image_that_takes_too_much_memory_is_stopped(slow):
    with DecodePool(1, Limits(memory_bytes=300_000_000)) as pool:
        list(pool.decode_many([b""]))
        (worker,) = pids(pool)
        results = list(pool.decode_many([picture(1), slow, picture(2)]))
        assert numbers(results) == [1, Status.too_large, 2]
        assert pids(pool) == [worker]  # it did not even die of it
    with DecodePool(1) as pool:
        assert numbers(pool.decode_many([slow])) == [5]


def test_workers_killed_from_outside_cost_nothing():
    with DecodePool(2) as pool:
        found = []
        for result in pool.decode_many(picture(number) for number in range(60)):
            found.append(result)
            if len(found) in (5, 20, 40):
                for pid in pids(pool):
                    os.kill(pid, signal.SIGKILL)
    assert numbers(found) == list(range(60))


def test_workers_leave_ctrl_c_to_the_caller():
    with DecodePool(1) as pool:
        assert numbers(pool.decode_many([picture(1)])) == [1]
        (worker,) = pids(pool)
        os.kill(worker, signal.SIGINT)
        assert numbers(pool.decode_many([picture(2)])) == [2]
        assert pids(pool) == [worker]


def test_what_nobody_waits_for_is_not_decoded(monkeypatch):
    monkeypatch.setattr(decode_pool, "_PROGRAM", MISCHIEF)
    with DecodePool(1, Limits(seconds=0.1), ahead=9) as pool:
        results = pool.decode_many([picture(1)] + [b"sleep"] * 8)
        next(results)
        results.close()
        start = time.monotonic()
        assert numbers(pool.decode_many([picture(2)])) == [2]
        assert time.monotonic() - start < 4  # one of the eight was under way, for a second


def test_images_in_flight_are_bounded():
    taken = itertools.count()
    last = 0

    def sources():
        nonlocal last
        for last in taken:
            yield picture(last)

    with DecodePool(2, ahead=3) as pool:
        results = pool.decode_many(sources())
        for number in range(20):
            assert numbers([next(results)]) == [number]
            assert last - number < 6
        results.close()
        # What was left in flight does not get into the next call.
        assert numbers(pool.decode_many([picture(300)])) == [300]


def test_a_pool_can_serve_two_at_a_time():
    with DecodePool(2) as pool:
        first = pool.decode_many(picture(number) for number in range(20))
        second = pool.decode_many(picture(number) for number in range(100, 120))
        pairs = [numbers(pair) for pair in zip(first, second, strict=True)]
    assert pairs == [[number, number + 100] for number in range(20)]


def test_an_error_of_the_sources_reaches_the_caller():
    def sources():
        yield picture(1)
        raise KeyError("lost")

    with DecodePool(1) as pool, pytest.raises(KeyError, match="lost"):
        list(pool.decode_many(sources()))


def test_content_over_the_limit_is_not_even_sent():
    with DecodePool(1, Limits(file_bytes=10)) as pool:
        assert numbers(pool.decode_many([picture(1)])) == [Status.too_large]
        assert pids(pool) == []


def test_workers_that_cannot_start_are_an_error(monkeypatch):
    monkeypatch.setattr(decode_pool, "_PROGRAM", "raise SystemExit(3)")
    with DecodePool(1) as pool, pytest.raises(SightlineError, match=r"cannot start .*code 3"):
        list(pool.decode_many([picture(1)]))


def test_a_pool_works_only_while_it_is_open():
    pool = DecodePool(1)
    with pytest.raises(RuntimeError, match="`with` block"):
        next(pool.decode_many([picture(1)]))
    for _ in range(2):
        with pool:
            assert numbers(pool.decode_many([picture(1)])) == [1]
    with pytest.raises(RuntimeError, match="`with` block"):
        next(pool.decode_many([picture(1)]))


@linux
def test_closing_ends_all_workers_even_busy_ones(monkeypatch):
    monkeypatch.setattr(decode_pool, "_PROGRAM", MISCHIEF)
    with DecodePool(2) as pool:
        results = pool.decode_many([picture(1), picture(2), b"sleep", b"sleep"] * 3)
        assert numbers([next(results)]) == [1]
        alive = pids(pool)
        assert alive
        assert all(running(pid) for pid in alive)
        start = time.monotonic()
    assert time.monotonic() - start < 5
    assert not any(running(pid) for pid in alive)


@linux
def test_workers_are_small_and_never_load_torch():
    with DecodePool(1) as pool:
        list(pool.decode_many([picture(1)]))
        (pid,) = pids(pool)
        assert "torch" not in Path(f"/proc/{pid}/maps").read_text()
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
    assert int(status["VmHWM"].split()[0]) < 80_000  # kB; 32,000 when this was written


SCRIPT = """
import sys, time
from sightline.decode_pool import DecodePool
from pathlib import Path
with DecodePool(2) as pool:
    results = pool.decode_many([Path(sys.argv[1])] * 10**6)
    for _ in range(20):
        next(results)
    print(*[worker.process.pid for worker in pool._alive], flush=True)
    for _ in results:
        pass
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_main_process(tmp_path, number):
    """Ctrl-C goes to the whole process group, the others to the main process alone."""
    path = tmp_path / "a.png"
    path.write_bytes(picture(1))
    # Without a guard for the main module: workers must not run the script once more.
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs are started with Ctrl-C ignored, and hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    workers = [int(word) for word in process.stdout.readline().split()]
    assert len(workers) == 2
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, words = process.communicate(timeout=10)
    wait_until(lambda: not any(running(pid) for pid in workers))
    if number == signal.SIGINT:
        assert words.count("Traceback") == 1
        assert words.rstrip().endswith("KeyboardInterrupt")


def test_workers_that_are_buried_while_a_pool_closes_do_not_disturb_it():
    """As after a second Ctrl-C, which ends the wait for the threads that bury them."""
    pool = DecodePool(2)

    class Worker:
        process = SimpleNamespace(kill=lambda: None)

        def end(self):
            pool._alive.clear()
            ended.append(self)

    ended = []
    pool._alive = {Worker(), Worker()}
    pool.close()
    assert len(ended) == 2
