"""The parts of the service that can be looked at alone."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from sightline.images import Status
from sightline.service.admission import Admission
from sightline.service.batching import Batcher
from sightline.service.configuration import Configuration
from sightline.service.errors import ServiceError
from sightline.service.feature_cache import FeatureCache, ImageResult, content_key
from sightline.service.limits import ServiceLimits
from sightline.service.metrics import Metrics
from sightline.service.pace import Pace
from sightline.service.shared_work import SharedWork
from sightline.service.upload_names import free_path, harmless_path

# ---- batches


class Recorder:
    """Doubles numbers, notes its batches, and can be held up."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, items):
        self.gate.wait(10)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [item * 2 for item in items]


def batched(scenario, **options):
    """Run a coroutine function with a batcher and its recorder."""
    recorder = Recorder()

    async def run():
        with ThreadPoolExecutor(1) as executor:
            settings = {"most": 4, "seconds": 0.05, **options}
            batcher = Batcher(recorder, executor, **settings)
            task = asyncio.create_task(batcher.run())
            try:
                return await asyncio.wait_for(scenario(batcher, recorder), 20)
            finally:
                recorder.gate.set()
                task.cancel()

    return asyncio.run(run()), recorder


def test_work_of_several_callers_is_done_together():
    async def scenario(batcher, _):
        return await asyncio.gather(*(batcher(n) for n in range(10)))

    results, recorder = batched(scenario)
    assert results == [2 * n for n in range(10)]
    assert [len(batch) for batch in recorder.batches] == [4, 4, 2]


def test_what_comes_while_a_batch_is_computed_is_the_next_batch():
    async def scenario(batcher, recorder):
        recorder.gate.clear()
        first = asyncio.create_task(batcher("a"))
        await asyncio.sleep(0.2)
        others = [asyncio.create_task(batcher(name)) for name in "bcd"]
        await asyncio.sleep(0)
        recorder.gate.set()
        return await asyncio.gather(first, *others)

    results, recorder = batched(scenario)
    assert results == ["aa", "bb", "cc", "dd"]
    assert recorder.batches == [["a"], ["b", "c", "d"]]


def test_cancelled_work_is_never_computed():
    async def scenario(batcher, recorder):
        recorder.gate.clear()
        first = asyncio.create_task(batcher("a"))
        await asyncio.sleep(0.2)
        dropped = [asyncio.create_task(batcher(name)) for name in "bcdefgh"]
        kept = asyncio.create_task(batcher("z"))
        await asyncio.sleep(0)
        for task in dropped:
            task.cancel()
        await asyncio.sleep(0)
        recorder.gate.set()
        return await asyncio.gather(first, kept)

    results, recorder = batched(scenario)
    assert results == ["aa", "zz"]
    assert recorder.batches == [["a"], ["z"]]


def test_a_bad_item_costs_no_other():
    async def scenario(batcher, _):
        return await asyncio.gather(
            batcher("a"), batcher("bad"), batcher("c"), return_exceptions=True
        )

    (first, bad, last), recorder = batched(scenario)
    assert (first, last) == ("aa", "cc") and isinstance(bad, ValueError)
    assert recorder.batches == [["a", "bad", "c"], ["a"], ["bad"], ["c"]]


def test_heavy_items_fill_a_batch_and_one_that_is_too_heavy_goes_alone():
    queued = []

    async def scenario(batcher, _):
        return await asyncio.gather(*(batcher(item) for item in ("aa", "bb", "cccccc", "d")))

    results, recorder = batched(scenario, weight=len, queued=queued.append)
    assert results == ["aaaa", "bbbb", "c" * 12, "dd"]
    assert recorder.batches == [["aa", "bb"], ["cccccc"], ["d"]]
    assert max(queued) == 4 and queued[-1] == 0


# ---- the cache


def result(status=Status.ok):
    return ImageResult(status, None, np.zeros(2, np.float32))


def test_the_cache_forgets_what_was_used_longest_ago():
    cache = FeatureCache(2)
    keys = [content_key(bytes([number])) for number in range(3)]
    cache.keep(keys[0], result())
    cache.keep(keys[1], result())
    assert cache.find(keys[0]) is not None
    cache.keep(keys[2], result())
    assert len(cache) == 2 and cache.find(keys[1]) is None and cache.find(keys[0]) is not None


def test_the_cache_keeps_no_result_that_may_be_better_next_time():
    cache = FeatureCache(2)
    cache.keep(b"a", result(Status.timeout))
    cache.keep(b"b", result(Status.undecodable))
    assert cache.find(b"a") is None and cache.find(b"b") is not None
    none = FeatureCache(0)
    none.keep(b"a", result())
    assert len(none) == 0


# ---- work that is shared


def test_work_that_several_want_is_done_once():
    begun = []

    async def work():
        begun.append(1)
        await asyncio.sleep(0.05)
        return len(begun)

    async def run():
        shared = SharedWork()
        first = await asyncio.gather(*(shared(b"a", work) for _ in range(5)))
        assert b"a" not in shared
        return first, await shared(b"a", work)

    assert asyncio.run(run()) == ([1] * 5, 2)


def test_shared_work_goes_on_while_one_waits_and_ends_with_the_last():
    ended = []

    async def work():
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        ended.append("done")
        return 7

    async def run(leaving):
        shared = SharedWork()
        tasks = [asyncio.create_task(shared(b"a", work)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for task in tasks[:leaving]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)
        return [one for one in results if one == 7]

    assert asyncio.run(run(2)) == [7] and ended == ["done"]
    assert asyncio.run(run(3)) == [] and ended == ["done", "cancelled"]


def test_shared_work_that_fails_fails_for_all():
    async def work():
        await asyncio.sleep(0)
        raise ValueError("bad")

    async def run():
        shared = SharedWork()
        tasks = [shared(b"a", work) for _ in range(3)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(one) for one in asyncio.run(run())] == [ValueError] * 3


# ---- admission


class Exchange:
    """One request through the admission, with the pieces of its body and what is answered."""

    def __init__(self, inner, pieces, **limits):
        self.pieces = list(pieces)
        self.sent = []
        self.cancelled = False
        self.inner = inner
        allowed = replace(ServiceLimits(), **limits)
        self.admission = Admission(self.app, allowed, Metrics(), lambda: True)

    async def app(self, scope, receive, send):
        try:
            await self.inner(receive, send)
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def receive(self):
        if self.pieces:
            return self.pieces.pop(0)
        return await asyncio.sleep(60)

    async def send(self, message):
        self.sent.append(message)

    def run(self):
        scope = {"type": "http", "method": "POST", "path": "/v1/link", "headers": []}
        asyncio.run(asyncio.wait_for(self.admission(scope, self.receive, self.send), 20))
        assert self.admission.active == 0 and self.admission.held_bytes == 0
        return self.sent[0]["status"] if self.sent else None


def piece(size, more):
    return {"type": "http.request", "body": b" " * size, "more_body": more}


async def answer_all(receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


async def never(receive, send):
    await receive()
    await asyncio.sleep(60)


def test_a_request_is_let_through():
    assert Exchange(answer_all, [piece(5, True), piece(5, False)]).run() == 200


def test_a_body_that_never_ends_is_given_up():
    exchange = Exchange(answer_all, [piece(1, True)], seconds=0.2)
    assert exchange.run() == 503 and exchange.cancelled
    assert (b"retry-after", b"1") in exchange.sent[0]["headers"]


def test_work_is_cancelled_when_the_time_is_up_and_when_the_client_has_left():
    exchange = Exchange(never, [piece(1, False)], seconds=0.2)
    assert exchange.run() == 503 and exchange.cancelled
    exchange = Exchange(never, [piece(1, False), {"type": "http.disconnect"}])
    assert exchange.run() is None and exchange.cancelled


def test_all_bodies_together_may_have_only_so_many_bytes():
    assert Exchange(answer_all, [piece(10, True), piece(1, False)], body_bytes=10).run() == 413
    assert Exchange(answer_all, [piece(10, True), piece(1, False)], bodies_bytes=10).run() == 503


def test_the_pace_follows_the_answers_and_notices_a_standstill():
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert pace.seconds(10) == 0
    now[0] = 100.0
    pace.begin()  # the idle time before does not count
    for _ in range(50):
        now[0] += 0.5
        pace.answer()
    assert pace.seconds(10) == pytest.approx(5)
    now[0] += 20
    assert pace.seconds(10) == pytest.approx(200)
    pace.answer()
    assert 10 < pace.seconds(10) < 50


def test_what_cannot_be_in_time_is_refused_at_once():
    exchange = Exchange(answer_all, [piece(1, False)], seconds=10)
    exchange.admission.pace = Pace(lambda: 0.0)
    exchange.admission.pace._mean = 0.9
    exchange.admission.active = 7
    exchange.admission._check_room({"headers": []})  # so many always have room
    exchange.admission.active = 8
    with pytest.raises(ServiceError, match="take too long") as refusal:
        exchange.admission._check_room({"headers": []})
    assert refusal.value.status == 429
    assert refusal.value.headers == {"Retry-After": "8"}  # 8 requests at 0.9 s
    exchange.admission.pace._mean = 900
    with pytest.raises(ServiceError) as refusal:
        exchange.admission._check_room({"headers": []})
    assert refusal.value.headers == {"Retry-After": "10"}  # no longer than a request may take
    exchange.admission.pace._mean = 0.1
    exchange.admission._check_room({"headers": []})


def test_a_body_that_trickles_gives_its_place_to_who_finds_none(monkeypatch):
    monkeypatch.setattr("sightline.service.admission._SLOW_SECONDS", 60)
    exchange = Exchange(answer_all, [], requests=1)
    scope = {"type": "http", "method": "POST", "path": "/v1/link", "headers": []}
    arrived = asyncio.Queue()
    answers = []

    def request(*pieces):
        waiting = list(pieces)

        async def receive():
            return waiting.pop(0) if waiting else await arrived.get()

        async def send(message):
            if "status" in message:
                answers.append((message["status"], bool(pieces)))

        return exchange.admission(scope, receive, send)

    async def run():
        slow = asyncio.create_task(request())
        await asyncio.sleep(0.01)
        await request(piece(1, False))
        assert answers == [(429, True)]  # it has just begun: it may be a normal one
        monkeypatch.setattr("sightline.service.admission._SLOW_SECONDS", 0.0)
        await request(piece(1, False))
        await slow

    asyncio.run(asyncio.wait_for(run(), 20))
    assert sorted(answers[1:]) == [(200, True), (503, False)]
    assert exchange.admission.active == 0 and not exchange.admission.arriving


def test_a_body_that_gave_its_place_is_answered_also_where_the_app_gives_up_first(monkeypatch):
    monkeypatch.setattr("sightline.service.admission._SLOW_SECONDS", 0.0)
    go_on = asyncio.Event()
    answers = []

    async def app(receive, send):
        await receive()
        await go_on.wait()
        if (await receive())["type"] == "http.disconnect":
            raise ClientDisconnect

    exchange = Exchange(app, [], requests=1)
    scope = {"type": "http", "method": "POST", "path": "/v1/link", "headers": []}

    async def receive():
        return piece(1, True)

    async def send(message):
        answers.append(message.get("status"))

    async def run():
        slow = asyncio.create_task(exchange.admission(scope, receive, send))
        await asyncio.sleep(0.01)
        (body,) = exchange.admission.arriving
        go_on.set()
        body.push_out()
        await slow

    asyncio.run(asyncio.wait_for(run(), 20))
    assert answers[0] == 503


# ---- names

PARTS = st.lists(st.sampled_from(["..", ".", "", "a", "b.jpg", "/", "\\", "C:", "\0", "~"]))


@given(st.one_of(st.text(), PARTS.map("/".join), PARTS.map("\\".join)))
def test_no_name_leads_out_of_its_folder(name):
    path = harmless_path(name)
    if path is not None:
        root = Path("/folder")
        whole = Path(root, path)
        assert whole != root and whole.is_relative_to(root)
        assert ".." not in whole.parts and "\0" not in str(whole)
        str(whole).encode()


def test_ordinary_names_stay():
    for name in ("a.html", "images/a b.jpg", "Bilder/Äpfel.png", "a/b/c.txt", ".hidden"):
        assert str(harmless_path(name)) == name
    assert str(harmless_path("images\\a.jpg")) == "images/a.jpg"
    for name in ("", "/a", "a/", "../a", "a/../b", "c:/a", "x" * 201, "/".join("a" * 17), "\ud800"):
        assert harmless_path(name) is None, name


def test_names_that_are_taken_get_a_number():
    taken = set()
    paths = [str(free_path(PurePosixPath("a/B.png"), taken)) for _ in range(3)]
    assert paths == ["a/B.png", "a/B-2.png", "a/B-3.png"]
    assert str(free_path(PurePosixPath("A/b.PNG"), taken)) == "A/b-4.PNG"


# ---- configuration


def test_the_configuration_survives_the_environment(monkeypatch):
    limits = ServiceLimits(images=3, seconds=1.5)
    configuration = Configuration(
        model="m", token="t", cors=("https://a.example",), corpora=("c",), limits=limits
    )
    monkeypatch.setenv("SIGHTLINE_SERVE", "")
    configuration.to_environment()
    assert Configuration.from_environment() == configuration


@pytest.mark.parametrize(
    ("host", "hosts", "expected"),
    [
        ("127.0.0.1", (), {"localhost", "127.0.0.1", "[::1]"}),
        ("0.0.0.0", (), set()),
        ("0.0.0.0", ("a.example",), {"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "a.example"}),
    ],
)
def test_which_hosts_are_allowed(host, hosts, expected):
    assert Configuration(host=host, hosts=hosts).allowed_hosts == expected
