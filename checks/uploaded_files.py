"""Uploads every file of some folders to a running service, which answers each and stays well.

    python checks/uploaded_files.py FOLDER... [--most 2000] [--plant]

Documents go to `/v1/link` and every third to `/v1/alt`; images, eight at a time, to `/v1/link` with
a page that shows them. An answer is 200 with a status for each image, or 4xx (or 503 for a file
that reached its limits) with a reason in JSON. Findings are any other answer, none, an image
without a status, files that the service leaves behind, a service that does not answer afterwards or
takes a gigabyte more than before. `--plant` ends the service in the middle: the control, exit code
1. `damaged_files.py` makes files; `hostile_corpora.py` says where there are others. Linux only.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from service_helpers import Service, files_below, tiny_model

from sightline.choices import ARTICLE_SUFFIXES

SECONDS, MEMORY_BYTES = 120, 1_000_000_000
#: How many images a page shows.
_OF_PAGE = 8
_BOUNDARY = "a-line-that-no-file-has"
_REFUSALS = (400, 413, 415, 422, 503)

Part = tuple[str, str, bytes]


def requests(files: Sequence[Path]) -> Iterator[tuple[str, list[Part]]]:
    """Yield the address and the parts of each upload."""
    documents = [file for file in files if file.suffix.lower() in ARTICLE_SUFFIXES]
    images = [file for file in files if file.suffix.lower() not in ARTICLE_SUFFIXES]
    for number, file in enumerate(documents):
        address = "/v1/alt" if number % 3 == 2 else "/v1/link"
        yield address, [("file", f"a{file.suffix}", file.read_bytes())]
    for start in range(0, len(images), _OF_PAGE):
        # All of one name's kind: by its name, an icon would be left out.
        some = [(f"{n}.jpg", file) for n, file in enumerate(images[start : start + _OF_PAGE])]
        page = "<p>A dog runs.</p>" + "".join(f"<img src={name}>" for name, _ in some)
        parts = [("images", name, file.read_bytes()) for name, file in some]
        yield "/v1/link", [("file", "a.html", page.encode()), *parts]


def body(parts: Sequence[Part]) -> bytes:
    """Give the parts as a form."""
    lines = []
    for field, name, data in parts:
        head = f'Content-Disposition: form-data; name="{field}"; filename="{name}"'
        lines += [f"--{_BOUNDARY}\r\n{head}\r\n\r\n".encode(), data, b"\r\n"]
    return b"".join([*lines, f"--{_BOUNDARY}--\r\n".encode()])


def upload(service: Service, address: str, parts: Sequence[Part]) -> tuple[int, str | None]:
    """Send one upload; gives the status of the answer, and what is wrong with it, if anything."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=SECONDS)
    media = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
    try:
        connection.request("POST", address, body(parts), media)
        answer = connection.getresponse()
        found = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        return 0, f"no answer ({type(error).__name__})"
    finally:
        connection.close()
    if answer.status in _REFUSALS:
        return answer.status, None if found.get("detail") else "refused without a reason"
    if answer.status != 200:
        return answer.status, f"answered {answer.status}: {str(found)[:200]}"
    statuses = [image.get("status") for image in found.get("images", [])]
    if address == "/v1/link" and (None in statuses or len(statuses) < len(parts) - 1):
        return 200, f"{len(statuses)} statuses of {len(parts) - 1} images"
    return 200, None


def main() -> int:
    """Upload the files and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=2000, help="files that are drawn")
    parser.add_argument("--plant", action="store_true", help="end the service in the middle")
    given = parser.parse_args()
    files = sorted(f for folder in given.folders for f in folder.rglob("*") if f.is_file())
    files = random.Random(1).sample(files, min(given.most, len(files)))
    counts, findings, slowest = Counter(), [], 0.0
    with tempfile.TemporaryDirectory() as place:
        folder, work = Path(place), Path(place) / "work"
        work.mkdir()
        tiny_model().save_pretrained(folder / "model")
        service = Service(folder / "model", folder=work).wait()
        before, left = service.memory(), files_below(work)
        todo = list(requests(files))
        for number, (address, parts) in enumerate(todo):
            if given.plant and number == len(todo) // 2:
                service.process.kill()
            start = time.monotonic()
            status, wrong = upload(service, address, parts)
            slowest = max(slowest, time.monotonic() - start)
            counts[status] += 1
            if wrong:
                findings.append(f"upload {number} ({address}, {parts[-1][1]}): {wrong}")
        more = service.memory() - before
        if service.status("/readyz") != 200:
            findings.append("the service does not answer any more")
        if more > MEMORY_BYTES:
            findings.append(f"the service takes {more / 1e6:.0f} MB more than before")
        findings += [f"{file.name} was left" for file in files_below(work) - left]
        if b"Traceback" in service.log.read_bytes():
            findings.append("a traceback in the log")
        service.stop()
    answers = ", ".join(f"{counts[status]:,} x {status}" for status in sorted(counts))
    print(f"{len(files):,} files in {len(todo):,} uploads: {answers}")
    print(f"slowest {slowest:.1f} s; the service takes {more / 1e6:+.0f} MB")
    print("".join(f"{line}\n" for line in findings) + f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
