"""The service as an operator meets it: real processes, sockets and signals."""

import base64
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import orjson
import pytest
from command_server import sightline
from service_helpers import ARTICLE, Service, archive, photograph, status_of, tiny_model

DOCS = (Path(__file__).parents[1] / "docs" / "service.md").read_text()


def body(images=1, first=0, size=(64, 48)):
    return json.dumps(
        {
            "sentences": ["A dog runs over the grass.", "A cat sleeps on the sofa."],
            "images": [
                {"data": base64.b64encode(photograph(first + n, size)).decode()}
                for n in range(images)
            ],
        }
    ).encode()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tiny_model().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def service(model, tmp_path_factory):
    service = Service(model, folder=tmp_path_factory.mktemp("service")).wait()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def narrow(model, tmp_path_factory):
    """A service with room for two requests."""
    arguments = ["--max-requests", 2, "--max-body", 8]
    service = Service(model, *arguments, folder=tmp_path_factory.mktemp("narrow")).wait()
    yield service
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(60) == 0  # Ctrl-C is no failure either


def post(service, content, kind="application/json"):
    request = urllib.request.Request(service.url + "/v1/link", content, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def eventually(check):
    for _ in range(300):
        if check():
            return
        time.sleep(0.1)
    raise AssertionError("not after half a minute")


# ---- the documentation


def fences(language):
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)


@pytest.fixture
def usual(tmp_path):
    """A service with the model that it has unless told otherwise, which knows confidences."""
    service = Service("default", folder=tmp_path).wait()
    yield service
    service.stop()


def test_every_curl_command_of_the_documentation(usual, tmp_path):
    files = {"dog.jpg": photograph(1), "cat.jpg": photograph(2), "article.html": ARTICLE.encode()}
    files["article.zip"] = archive({**files, "images/cat.jpg": files["cat.jpg"]})
    files["notes.txt"] = b"A dog runs.\n"
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    commands = "".join(fences("sh")).replace("\n  ", " ").replace("\n}'", " }'").splitlines()
    assert len(commands) == 9 and all(command.startswith("curl ") for command in commands)
    answers = []
    for command in commands:
        command = command.replace("http://127.0.0.1:8000", usual.url)
        done = subprocess.run(
            ["bash", "-c", command.replace("curl ", "curl -sS --fail-with-body ", 1)],
            capture_output=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        answers.append(done.stdout)
    assert orjson.loads(answers[0])["id"] == "doc-1" and "matrix" in orjson.loads(answers[0])
    statuses = [image["status"] for image in orjson.loads(answers[1])["images"]]
    assert statuses == ["ok", "ok", "missing"]
    assert (tmp_path / "article.links.html").read_text().startswith("<!doctype html>")
    assert answers[5].startswith(b"id,image,")
    assert orjson.loads(answers[7])["article"] == "article.html"


def test_the_python_client_of_the_documentation(service, tmp_path):
    (tmp_path / "dog.jpg").write_bytes(photograph(1))
    (code,) = fences("python")
    code = code.replace("http://127.0.0.1:8000", service.url)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


# ---- starting and stopping


def test_a_model_that_cannot_be_loaded_is_told(tmp_path):
    (tmp_path / "folder").mkdir()
    service = Service(tmp_path / "none", folder=tmp_path / "folder")
    assert service.process.wait(60) == 1
    words = service.log.read_text()
    assert "Traceback" not in words and "is not a model folder" in words.splitlines()[-1]


def test_requests_under_way_are_finished_at_the_end(model, tmp_path):
    service = Service(model, folder=tmp_path).wait()
    content = body()
    connection = service.connect(length=len(content), body=content[:100])
    eventually(lambda: service.metric("sightline_requests_active") == 1)
    service.process.terminate()
    time.sleep(0.5)
    connection.sendall(content[100:])
    assert status_of(connection) == 200
    assert service.process.wait(60) == 0
    events = [orjson.loads(line) for line in service.log.read_bytes().splitlines()]
    assert any(event["event"] == "request" and event["status"] == 200 for event in events)
    assert events[-1]["level"] == "info"
    assert not list(tmp_path.glob("sightline-*"))


def test_several_processes_at_one_port(model, tmp_path):
    service = Service(model, "--workers", 2, folder=tmp_path).wait()
    try:
        eventually(lambda: service.metric("sightline_ready") == 2)
        for number in range(6):
            assert post(service, body(first=number))[0] == 200
        counted = 'sightline_requests_total{method="POST",route="/v1/link",status="200"}'
        assert service.metric(counted) == 6
    finally:
        assert service.stop() == 0


# ---- limits


def test_a_request_beyond_the_limit_is_refused_and_told_when_to_come_again(narrow):
    content = body()
    held = [narrow.connect(length=len(content), body=content[:10]) for _ in range(2)]
    eventually(lambda: narrow.metric("sightline_requests_active") == 2)
    status, headers = post(narrow, content)
    assert status == 429 and 1 <= int(headers["Retry-After"]) <= 30
    assert narrow.status("/healthz") == 200 and narrow.status("/readyz") == 200
    for connection in held:
        connection.sendall(content[10:])
        assert status_of(connection) == 200
    assert post(narrow, content)[0] == 200


def test_a_large_body_is_refused_by_a_client_that_only_sends(narrow):
    content = b" " * (9 * 2**20)
    assert status_of(narrow.connect(body=content)) == 413
    chunked = socket.create_connection(("127.0.0.1", narrow.port), 60)
    chunked.sendall(
        b"POST /v1/link HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(9):
        chunked.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
    chunked.sendall(b"0\r\n\r\n")
    assert status_of(chunked) == 413


def test_work_of_a_client_that_left_is_dropped(service):
    left = 'sightline_requests_total{method="POST",route="/v1/link",status="499"}'
    before = service.metric(left)
    for number in range(4):
        content = body(images=20, first=1000 + 20 * number, size=(320, 240))
        connection = service.connect(body=content)
        connection.close()
    service.connect(length=len(content), body=content[:1000]).close()
    eventually(lambda: service.metric(left) == before + 5)
    assert b"Traceback" not in service.log.read_bytes()
    eventually(lambda: service.metric("sightline_requests_active") == 0)
    eventually(lambda: service.metric('sightline_queue_items{kind="images"}') == 0)
    assert service.metric('sightline_batch_items_sum{kind="images"}') < 80
    assert post(service, body())[0] == 200


def resident(pid):
    """Megabytes of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_overload(narrow):
    """Twenty clients where there is room for two: all are answered, and nothing stays behind."""
    assert post(narrow, body())[0] == 200
    before = resident(narrow.process.pid)
    seen, lock, end = Counter(), threading.Lock(), time.monotonic() + 4

    def client(number):
        turn = 0
        while time.monotonic() < end:
            turn += 1
            status, _ = post(narrow, body(images=3, first=10_000 * number + 3 * turn))
            with lock:
                seen[status] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    health = Counter()
    while time.monotonic() < end:
        health[narrow.status("/healthz")] += 1
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    assert set(seen) <= {200, 429, 503} and seen[200] and seen[429]
    assert set(health) == {200}
    assert narrow.metric("sightline_requests_active") == 0
    assert post(narrow, body())[0] == 200
    assert resident(narrow.process.pid) < before + 200


def test_generated_requests_find_no_failure(service, tmp_path):
    """Few of them; `make fuzz` makes more."""
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "run", "--max-time", "6"),
            *("--phases", "examples,coverage", "--suppress-health-check", "all"),
            *("--checks", "not_a_server_error,response_schema_conformance", "--no-color"),
            f"{service.url}/openapi.json",
        ],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "generated" in done.stdout and b"Traceback" not in service.log.read_bytes()


# ---- logs


def test_logs_are_json_and_hold_no_content(service):
    request = urllib.request.Request(
        service.url + "/v1/link", body(), {"Content-Type": "application/json"}
    )
    request.add_header("X-Request-ID", "find-me")
    urllib.request.urlopen(request, timeout=60).close()
    eventually(lambda: b"find-me" in service.log.read_bytes())
    lines = service.log.read_bytes().splitlines()
    events = [orjson.loads(line) for line in lines]
    (found,) = [event for event in events if event.get("request_id") == "find-me"]
    assert {"time", "level", "event", "method", "path", "status", "seconds"} <= set(found)
    assert (found["status"], found["path"]) == (200, "/v1/link") and found["bytes_in"] > 1000
    assert b"A dog" not in b"".join(lines)


def test_a_port_that_is_taken_is_told_in_a_sentence(model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        _, words = sightline("serve", "--model", model, "--port", port, expect=1)
    assert words == f"Error: Port {port} is in use; try --port {port + 1}.\n"
    _, words = sightline("serve", "--host", "no such host", "--token-file", __file__, expect=1)
    assert words.startswith("Error: The service cannot listen at no such host:8000 (")


def test_a_corpus_that_is_none_is_told_in_a_sentence(tmp_path):
    _, words = sightline("serve", "--corpus", tmp_path, "--port", 0, expect=1)
    assert words.startswith(f"Error: {tmp_path}: no documents in this folder")
