"""The articles that come with the service, for people who have none at hand."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from importlib.resources import files

_IMAGE = re.compile(r"[\w/-]+\.jpg\b")


@dataclass(frozen=True, slots=True)
class Example:
    """An article, whose it is, and where in the package it lies."""

    name: str
    title: str
    words: str
    credit: str
    address: str
    file: str

    def to_record(self) -> dict[str, str]:
        """For the page."""
        return {
            "name": self.name,
            "title": self.title,
            "words": self.words,
            "credit": self.credit,
            "address": self.address,
        }

    def archive(self) -> bytes:
        """The article with the images that it names as a zip file, the same bytes each time."""
        folder, _, name = self.file.rpartition("/")
        root = files("sightline").joinpath(*folder.split("/"))
        text = (root / name).read_bytes()
        images = sorted(set(_IMAGE.findall(text.decode())))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
            for image in images:
                archive.writestr(zipfile.ZipInfo(image), root.joinpath(image).read_bytes())
        return buffer.getvalue()


EXAMPLES = (
    Example(
        "tides",
        "Ocean Tides and the Moon",
        "A textbook section with five figures",
        "Astronomy, OpenStax, Rice University, CC BY 4.0",
        "https://openstax.org/details/books/astronomy-2e",
        "service/examples/tides/article.html",
    ),
    Example(
        "biodiversity",
        "Threats to Biodiversity",
        "A longer textbook section with six photographs",
        "Biology, OpenStax, Rice University, CC BY 4.0",
        "https://openstax.org/details/books/biology-2e",
        "data/demo/threats-to-biodiversity.html",
    ),
    Example(
        "cable",
        "Solenoid Valve Cable Fix",
        "A guide with fourteen photographs, in Markdown",
        "FarmBot Docs, MIT License",
        "https://github.com/FarmBot-Docs/farmbot-genesis",
        "data/demo/solenoid-valve-cable-fix.md",
    ),
)
