"""Puts thousands of cross-site-scripting payloads into everything that ends up in a page of ours.

    python checks/cross_site_scripting.py [--payloads FILE...] [--every N] [--parts PART...]

12,000 payloads are made (`tests/script_payloads.py`). FILE adds public ones: each string of a
file that is JSON, each line of any other. Packages that hold lists:

    npm pack xss-scanner@0.0.9      # data/payload.txt
    npm pack xss-filters@1.2.7      # tests/fuzz/bin/seed.xss
    npm pack blns@2.0.4             # resources/blns.json
    npm pack dompurify@0.6.7        # test/fixtures/expect.js
    pip download --no-binary :all: --no-deps bleach lxml_html_clean wapiti3 html5lib==0.9999999

Each payload is the text of a sentence, alternative text, title, caption, name and address of an
image and target of a link, in HTML, Markdown and JSON, and stands as markup. It goes

    control   into pages without escape and policy: what runs there shows that running is seen
    service   through the web page: the article, its matrix, corrections, downloads opened as
              files; the list and the documents of a corpus; the words of an error
    answers   into requests whose answers repeat it: their types, and looked at in the browser
    files     through `sightline link --format html`, the sample page, the report of a
              reproduction, the demo page, the report on alternative texts, a notebook's output

in Chromium. Seen are calls of alert and its like, dialogs, errors and words on the console
(a policy that had to step in says so there), requests and connections, and elements and
attributes that our pages do not have. Exit code 1 if anything was seen, or if the control saw too
little. Takes some 8 minutes on two cores; `--every 40` takes one payload of 40.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import rendered_pages
from hostile_articles import chunks, html_article, markdown_article, native_document, shown
from script_payloads import payloads as made_payloads
from script_watch import careless, watching
from service_helpers import Service, photograph, tiny_model

PARTS = ("service_page", "corpora", "answers", "files")
#: Of those that were made, such a share runs in a careless page, or nobody is looking.
FEWEST_RUN = 0.25
_LONGEST = 1_000  # characters; a limit of the service on names
#: One matrix of so many is drawn: they have 30,000 cells.
_DRAWN = 6
_OF_FILE = 500  # payloads in a file
# Draws what is drawn only when somebody asks: the matrix of an article, each document of a report.
_USE = """all => {
  const matrix = document.querySelector("details");
  if (matrix && all) matrix.open = true;
  for (const one of document.querySelectorAll("#list[role=listbox] > li")) one.click();
}"""


def public_payloads(files: list[Path]) -> list[str]:
    """The lines, or the strings, of files."""

    def strings(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                yield from strings(one)

    found: list[str] = []
    for file in files:
        text = file.read_text("utf-8", "replace")
        try:
            found += strings(json.loads(text))
        except ValueError:
            found += text.splitlines()
    return [text[:_LONGEST] for text in dict.fromkeys(found) if text.strip()]


# ---- the service


class Check:
    """One run; what was seen is in `watch.wrong`."""

    def __init__(self, watch, service, folder: Path, payloads: list[str]):
        self.watch, self.service, self.folder = watch, service, folder
        self.payloads = payloads
        self.texts = 0
        self.connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)

    def service_page(self) -> int:
        """Upload every chunk to the page, use the page, open what it downloads."""
        page = self.watch.open(self.service.url + "/", "the page")
        page.locator("#examples button").first.wait_for()
        page.select_option("#unit", "paragraph")
        for number, some in enumerate(chunks(self.payloads)):
            self.watch.looking = f"the page with article {number}"
            self._upload(page, number, some)
            frame = page.frame_locator("#frame iframe")
            frame.locator("#empty").wait_for(state="attached")
            page.select_option("#policy", label="Every image (MMC4)")
            frame.locator(".badge").first.wait_for()
            self.texts += shown(frame.locator("body").text_content(), some)
            if number % _DRAWN == 0:
                frame.locator("nav a[href='#matrix']").click()
                frame.locator("#cells td").first.wait_for(state="attached")
            page.click("#correct")
            frame.locator(".sentence.off .pick").first.click()
            frame.locator(".choice[aria-pressed=false]").first.click()
            frame.locator(".badge.hand").first.wait_for()
            self.watch.look(page)
            words = ("Page", "Alt-text report")[number % 2]
            self._open_download(page, words, f"{words} of article {number}")
            if number == 0:
                for words in ("JSONL", "CSV", "Annotations"):
                    self._download(page, words)
            page.click("#back")
            self._error(page, number, some)
        page.close()
        return len(chunks(self.payloads))

    def _upload(self, page, number: int, some: list[str]) -> None:
        name = re.sub(r'[\0-\x1f\x7f/\\:*?"<>|]', "-", some[0])[:80] + ".html"
        article = {"name": name, "mimeType": "text/html", "buffer": html_article(some).encode()}
        image = {"name": "real.jpg", "mimeType": "image/jpeg", "buffer": photograph(number)}
        page.set_input_files("#files", [article, image])

    def _download(self, page, words: str) -> bytes:
        page.click("#downloads summary")
        with page.expect_download() as event:
            page.locator("#downloads li button", has_text=words).first.click()
        return Path(event.value.path()).read_bytes()

    def _open_download(self, page, words: str, looking: str) -> None:
        before = self.watch.looking
        file = self.folder / "download.html"
        file.write_bytes(self._download(page, words))
        self.open_file(file, looking)
        self.watch.looking = before

    def _error(self, page, number: int, some: list[str]) -> None:
        """An answer that says no, in the words of payloads."""
        self.watch.expected = ("Failed to load resource",)
        answer = {"detail": some[0], "errors": [{"field": p, "reason": p} for p in some]}
        page.route("**/v1/page", lambda route: route.fulfill(
            status=422, content_type="application/problem+json", body=json.dumps(answer)
        ))  # fmt: skip
        self._upload(page, number, some)
        page.locator("#problem li").first.wait_for()
        self.watch.look(page)
        page.unroute("**/v1/page")
        page.click("#problem button")
        self.watch.expected = ()

    def corpora(self) -> int:
        """The list of a corpus whose titles are payloads, and documents made of them."""
        page = self.watch.open(self.service.url + "/#corpus", "the list of a corpus")
        page.select_option("#which-corpus", "titles")
        done = re.compile(f"^{len(self.payloads):,} documents$")
        page.locator("#scored", has_text=done).wait_for(timeout=300_000)
        splits = page.locator("#split option").evaluate_all("all => all.map(o => o.value)")
        seen = 0
        for split in splits[1:]:
            with page.expect_response("**/documents?*") as event:
                page.select_option("#split", split)
            page.locator(f"#rows li:nth-child({len(event.value.json()['rows'])})").wait_for()
            seen += page.locator("#rows li").count()
            self.watch.look(page)
        assert seen == len(self.payloads), seen
        page.select_option("#which-corpus", "documents")
        count = len(chunks(self.payloads))
        page.locator("#scored", has_text=re.compile(rf"^{count} documents?$")).wait_for()
        for number in range(count):
            self.watch.looking = f"document {number} of a corpus"
            page.locator("#rows button").nth(number).click()
            page.locator("#status", has_text=f", {number + 1} of {count}").wait_for()
            frame = page.frame_locator("#frame iframe")
            frame.locator("#cells td").first.wait_for(state="attached")
            self.watch.look(page)
        page.close()
        return seen

    # ---- answers

    def answers(self) -> int:
        """Requests whose answers repeat what was asked: none of them is a page."""
        page = self.watch.open(self.service.url + "/readyz", "an answer")
        self.watch.expected = ("Failed to load resource",)
        looked = 0
        for number, payload in enumerate(self.payloads):
            quoted = urllib.parse.quote(payload.replace("/", "|"), safe="")
            paths = ("/page/", "/v1/examples/", "/v1/corpora/0/documents?sort=")
            path = f"{paths[number % len(paths)]}{quoted}"
            self._answer(path)
            if number % 10 == 0:
                page.goto(self.service.url + path)
                self.watch.look(page)
                looked += 1
        for some in chunks(self.payloads):
            document = {"sentences": some, "images": [], "id": some[0]}
            for form in ("json", "jsonl", "csv", "annotations", "html"):
                body = self._answer(f"/v1/link?format={form}", document)
                if form == "html":
                    file = self.folder / "answer.html"
                    file.write_bytes(body)
                    self.open_file(file, "an answer of /v1/link as a page")
            self._answer("/v1/link", {**document, some[0]: some[1:9], "__proto__": some[-1]})
        self.watch.expected = ()
        page.close()
        return looked

    def _answer(self, path: str, document: object = None) -> bytes:
        """An answer, whose type and headers have to be right."""
        data = None if document is None else json.dumps(document).encode()
        method = "GET" if data is None else "POST"
        self.connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        body = answer.read()
        page = "format=html" in path and answer.status == 200
        kind = answer.headers["Content-Type"].partition(";")[0]
        policy = answer.headers["Content-Security-Policy"]
        if (kind == "text/html") != page or answer.headers["X-Content-Type-Options"] != "nosniff":
            self.watch.note("answer", f"{path} is {kind}")
        if "default-src 'none'" not in policy or "unsafe" in policy:
            self.watch.note("answer", f"{path} has the policy {policy}")
        return body

    # ---- files

    def open_file(self, file: Path, looking: str) -> str:
        """Look at a file in a page of its own; gives its text."""
        page = self.watch.open(file.as_uri(), looking)
        page.evaluate(_USE, self.watch.looks % _DRAWN == 0)
        self.watch.look(page)
        text = page.locator("body").text_content()
        page.close()
        return text

    def files(self) -> int:
        """Every page that the command line writes."""
        inputs, outputs = self.folder / "articles", self.folder / "pages"
        inputs.mkdir()
        (inputs / "real.jpg").write_bytes(photograph(1))
        for number, some in enumerate(chunks(self.payloads, _OF_FILE)):
            (inputs / f"h{number}.html").write_text(html_article(some), "utf-8", "replace")
            (inputs / f"m{number}.md").write_text(markdown_article(some), "utf-8", "replace")
        articles = sorted(file for file in inputs.iterdir() if file.suffix != ".jpg")
        model = self.folder / "tiny"
        command = [sys.executable, "-m", "sightline", "link", *articles, "--format", "html"]
        command += ["-o", outputs, "--model", model, "--policy", "mmc4", "--unit", "paragraph"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        written = sorted(outputs.iterdir())
        assert len(written) == len(articles), f"{len(written)} pages of {len(articles)} articles"
        for file in written:
            self.open_file(file, f"the page {file.name}")
        for name, page in rendered_pages.pages(self.payloads, chunks(self.payloads, 2 * _OF_FILE)):
            file = self.folder / "rendered.html"
            file.write_text(page, "utf-8", "replace")
            self.open_file(file, name)
            written.append(file)
        return len(written)


def write_corpora(folder: Path, payloads: list[str]) -> list[Path]:
    """A corpus of a document for each payload, and one of a document for each chunk."""
    of_split = min(100, len(payloads) // 2)  # the page lists so many at once
    titles = [
        {"id": f"{n} {text}"[:900], "title": text, "sentences": [text], "images": [text],
         "split": f"{n // of_split} {payloads[n // of_split * of_split][:80]}", "links": [[0, 0]]}
        for n, text in enumerate(payloads)
    ]  # fmt: skip
    documents = [native_document(some, str(n)) for n, some in enumerate(chunks(payloads))]
    paths = []
    for name, records in (("titles", titles), ("documents", documents)):
        path = folder / name
        path.mkdir()
        (path / "real.jpg").write_bytes(photograph(1))
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (path / "documents.jsonl").write_text(lines, "utf-8")
        paths.append(path)
    return paths


def main() -> int:
    """Run all parts; prints what each looked at, and whatever was seen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--payloads", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--every", type=int, default=1, help="take one payload of so many")
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, default=PARTS, help="beside the control"
    )
    parser.add_argument("--list", action="store_true", help="print the payloads and end")
    given = parser.parse_args()
    made = made_payloads(given.every)
    public = public_payloads(given.payloads)
    payloads = [text for text in dict.fromkeys([*made, *public]) if text.strip()]
    if given.list:
        print("\n".join(map(repr, payloads)))
        return 0
    print(f"{len(payloads):,} payloads: {len(made):,} made, {len(public):,} public", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tiny_model().save_pretrained(folder / "tiny")
        corpora = [
            option for path in write_corpora(folder, payloads) for option in ("--corpus", path)
        ]
        limits = ("--max-images", 1000, "--max-seconds", 120)
        service = Service(folder / "tiny", *corpora, *limits, folder=folder).wait()
        try:
            with watching(service.url) as watch:
                return _run(watch, service, folder, payloads, made, given.parts)
        finally:
            service.stop()


def _run(watch, service, folder, payloads, made, parts) -> int:
    check = Check(watch, service, folder, payloads)
    for part in (check.service_page, check.corpora, check.answers, check.files):
        name = part.__name__
        if name not in parts:
            continue
        start, before = time.monotonic(), len(watch.wrong)
        count = part()
        seen = len(watch.wrong) - before
        words = f"{name}: {count:,} looked at, {time.monotonic() - start:.0f} s"
        print(f"{words}, {seen:,} seen, {len(watch.external())} connections", flush=True)
    external = watch.external()
    print(f"payloads shown as text in articles: {check.texts:,}; frames looked at: {watch.looks:,}")
    print(f"seen: {len(watch.wrong):,}; connections elsewhere: {len(external)}", flush=True)
    print("\n".join([*watch.wrong[:40], *external]))
    few = "service_page" in parts and check.texts < 0.9 * len(payloads)
    if few:
        print("Too few payloads were shown as text: they may not have come through.")
    return 1 if watch.wrong or external or few or _is_blind(watch, payloads, made) else 0


def _is_blind(watch, payloads, made) -> bool:
    """The control: whether too little was seen of what does run."""
    start = time.monotonic()
    watch.proxy.asked.clear()
    ran, poked, asked = careless(watch, payloads)
    share = len([number for number in ran | poked if number < len(made)]) / len(made)
    print(f"control: {len(ran):,} ran by themselves, {len(poked):,} more once poked, {asked:,} "
          f"connections elsewhere, {time.monotonic() - start:.0f} s")  # fmt: skip
    if share < FEWEST_RUN or not asked:
        print("The control saw too little: the check may be blind.")
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
