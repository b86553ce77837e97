"""A service and a browser for the tests of its web page; whatever goes wrong in the page is seen.

A plugin: the tests of one run share the service.
"""

from pathlib import Path
from typing import ClassVar

import orjson
import pytest
from hostile_texts import PAYLOADS
from service_helpers import ARTICLE, Service, archive, photograph, tiny_model


@pytest.fixture(scope="session")
def page_service(tmp_path_factory):
    """A service with a model of random weights and two corpora, the second one hostile."""
    folder = tmp_path_factory.mktemp("page")
    tiny_model().save_pretrained(folder / "tiny")
    words = ["A dog runs.", "A cat sleeps."]
    pets = [
        {"id": f"pets-{n}", "title": f"Pets, part {n}", "sentences": [*words, f"Grass, {n} times."],
         "images": [f"images/{n}a.jpg", f"images/{n}b.jpg"], "links": [[0, 0], [1, 1]]}
        for n in range(4)
    ]  # fmt: skip
    hostile = [
        {"id": f"{n} {text}", "title": text, "sentences": [f"A dog. {text}", "A cat."],
         "images": ["images/a.jpg", text], "alts": [text, text], "links": [[0, 0]], "split": text}
        for n, text in enumerate(PAYLOADS[:40])
    ]  # fmt: skip
    for name, records in (("pets", pets), ("hostile", hostile)):
        (folder / name / "images").mkdir(parents=True)
        lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
        (folder / name / "documents.jsonl").write_bytes(lines)
        for number, image in enumerate({i for r in records for i in r["images"]}):
            if image.startswith("images/"):
                (folder / name / image).write_bytes(photograph(number))
    corpora = ("--corpus", folder / "pets", "--corpus", folder / "hostile")
    service = Service(folder / "tiny", *corpora, folder=folder)
    yield service.wait()
    service.stop()


class Watched:
    """Pages of one test, and whatever they did that they should not."""

    #: The images of `ARTICLE` but for the one that is missing; both together.
    IMAGES: ClassVar = {"dog.jpg": photograph(1), "images/cat.jpg": photograph(2)}
    PETS = ("pets.zip", archive({"article.html": ARTICLE, **IMAGES}))

    def __init__(self, browser, url):
        self.browser, self.url = browser, url
        self.wrong, self.contexts = [], []
        #: Words of the console that a test brings about on purpose.
        self.expected = ()

    def open(self, path="/", **options):
        size = {"width": 1280, "height": 800}
        context = self.browser.new_context(
            **{"viewport": size, "reduced_motion": "reduce", **options}
        )
        self.contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: self.note(message.text))
        page.on("pageerror", lambda error: self.note(str(error)))
        page.on("dialog", lambda dialog: (self.note(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self._request(request.url))
        page.goto(self.url + path)
        return page

    def note(self, words):
        if not any(expected in words for expected in self.expected):
            self.wrong.append(words)

    def _request(self, address):
        if not address.startswith((self.url + "/", "data:", "blob:", "about:srcdoc")):
            self.note(address[:80])

    def frame(self, page):
        """The article in its frame, by the one policy that is sure to link every image."""
        frame = page.frame_locator("#frame iframe")
        frame.locator("#empty").wait_for(state="attached")
        page.select_option("#policy", label="Every image (MMC4)")
        frame.locator(".badge").first.wait_for()
        return frame

    def give(self, page, *files):
        """Choose files by name and content."""
        kind = "application/octet-stream"
        page.set_input_files(
            "#files", [{"name": name, "mimeType": kind, "buffer": data} for name, data in files]
        )

    def open_pets(self):
        """A page that shows a small article with two images and a third that is missing."""
        page = self.open()
        self.give(page, self.PETS)
        return page, self.frame(page)

    def open_example(self, **options):
        page = self.open(**options)
        page.click("#examples button")
        return page, self.frame(page)

    def downloaded(self, page, words):
        """The name and the content of what one entry of the menu gives."""
        page.click("#downloads summary")
        with page.expect_download() as event:
            page.locator("#downloads li button", has_text=words).first.click()
        return event.value.suggested_filename, Path(event.value.path()).read_bytes()

    def links(self, frame):
        """The pairs of sentence and image that are shown."""
        script = "rows => rows.map(r => [...r.querySelectorAll('a')].map(a => a.hash).reverse())"
        rows = frame.locator("tr[data-link]:visible").evaluate_all(script)
        numbers = [[int(address.rpartition("-")[2]) - 1 for address in row] for row in rows]
        return sorted((sentence, image) for sentence, image in numbers)


@pytest.fixture
def watched(browser, page_service):
    found = Watched(browser, page_service.url)
    yield found
    for context in found.contexts:
        context.close()
    assert not found.wrong
