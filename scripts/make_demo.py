"""Gather the documents of `sightline demo`: src/sightline/data/demo, from the data's folder.

    python scripts/make_demo.py DATA

DATA holds `openstax/` and `guides/` with `documents.jsonl` and `images/`. The same data gives the
same files. The documents are of the validation split and were chosen for their photographs and
licences out of those on which an earlier model did well, so that the demo's scores flatter; none
shares text with the training split. Images stay as they are there, 240 pixels on the shorter side:
the network looks at 224 of them.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import orjson

FOLDER = Path(__file__).parents[1] / "src" / "sightline" / "data" / "demo"
KEPT = ("id", "title", "source", "commit", "license", "sentences", "images", "alts")
CC_BY = "https://creativecommons.org/licenses/by/4.0/"


@dataclass(frozen=True)
class Chosen:
    """A document, whose work it is, and the credits that the source gives beside its images."""

    collection: str
    id: str
    author: str
    credits: tuple[str | None, ...]


OPENSTAX = "OpenStax, Rice University"
DOCUMENTS = (
    Chosen(
        "openstax", "osbooks-biology-bundle/m45574", OPENSTAX,
        (None, "Lian Pin Koh", "NPS", "Brian Gratwicke",
         "modification of work by Marvin Moriarty, USFWS", "USGS, GNP Archives"),
    ),
    Chosen(
        "openstax", "osbooks-biology-bundle/m66699", OPENSTAX,
        (None, "Eric Inafuku", "J.M. Garg", "Linda “jinterwas”/Flickr",
         "a: modification of work by Brian Gratwicke; b: modification of work by Stephen Childs",
         "modification of work by Mark Harkin", None, "Roland Tanglao", None),
    ),
    Chosen(
        "openstax", "osbooks-astronomy/m59805", OPENSTAX,
        ("ESO/G. Huedepohl",
         "a: modification of work by Caltech/Palomar Observatory; b: modification of work by "
         "Gemini Observatory/AURA",
         "NASA", None, None, "ESO",
         "modification of work by ESO, F.Marchis, M.Wong (UC Berkeley); E.Marchetti, P.Amico, "
         "S.Tordo (ESO)"),
    ),
    Chosen(
        "openstax", "osbooks-american-government/m90378", OPENSTAX,
        ("Tony Webster", None, "Michael L. Baird", "modification of work by Liz West"),
    ),
    Chosen(
        "openstax", "osbooks-psychology/m82202", OPENSTAX,
        ("U.S. Air Force, Senior Airman Kasey Close",
         "a: modification of work by Tony Cecala; b: modification of work by Andrew Hyde",
         "“woodleywonderworks”/Flickr"),
    ),
    Chosen(
        "openstax", "osbooks-introduction-sociology/m90158", OPENSTAX,
        ("Jan Lewandowski/flickr", "Jean-Antoine-Theodore Giroust/Wikimedia Commons",
         "Ran Zwigenberg/flickr", "Brian Turner/flickr"),
    ),
    Chosen("openstax", "osbooks-us-history/m50185", OPENSTAX, (None,) * 5),
    Chosen(
        "guides", "farmbot-genesis/v1.6/extras/troubleshooting/solenoid-valve-cable-fix.md",
        "FarmBot Docs", (None,) * 14,
    ),
    Chosen(
        "guides", "px4_user_guide/en/complete_vehicles/px4_vision_kit.md",
        "The PX4 user guide's contributors", (None,) * 9,
    ),
)  # fmt: skip

#: Which of them are articles too. The records are sentences alone: what stands here is the
#: source's own division. Headings and paragraphs begin at these sentences; those left out point
#: to web pages.
TEXTBOOK, TEXTBOOK_FILE = "osbooks-biology-bundle/m45574", "threats-to-biodiversity.html"
TEXTBOOK_HEADINGS = {
    11: "Habitat Loss",
    26: "Preventing Habitat Destruction with Wise Wood Choices",
    52: "Overharvesting",
    83: "Exotic Species",
    122: "Climate Change",
    152: "Section Summary",
}
TEXTBOOK_PARAGRAPHS = {0, 31, 40, 67, 72, 78, 86, 92, 111, 137, 140, *TEXTBOOK_HEADINGS}
TEXTBOOK_LEFT_OUT = {64, 65, 66, 77, 91}
GUIDE, GUIDE_FILE = DOCUMENTS[-2].id, "solenoid-valve-cable-fix.md"
GUIDE_TITLE = "Solenoid Valve Cable Fix"
GUIDE_HEADINGS = {
    1: "Step 1: Cut off the incorrect terminals",
    2: "Step 2: Remove the heatshrink",
    3: "Step 3: Carefully cut off the outer cable insulation",
    4: "Step 4: Replace the heatshrink",
    5: "Step 5: Carefully cut off the inner wire insulation",
    6: "Step 6: Crimp on the new terminals",
    8: "Messed up?",
}

#: The licence of FarmBot's documentation asks for its words in every copy.
FARMBOT_LICENCE = """\
MIT License

Copyright (c) 2020 FarmBot Docs

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""

Record = dict[str, Any]


def main(data: Path) -> None:
    """Write the corpus, its images, the articles and who made them."""
    sources = {name: _records(data / name / "documents.jsonl") for name in ("openstax", "guides")}
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    (FOLDER / "images").mkdir(parents=True)
    kept = []
    for chosen in DOCUMENTS:
        source = sources[chosen.collection][chosen.id]
        for image in source["images"]:
            shutil.copyfile(data / chosen.collection / image, FOLDER / image)
        kept.append(_bundled(source, chosen))
    _write("documents.jsonl", b"".join(orjson.dumps(record) + b"\n" for record in kept).decode())
    by_id = {record["id"]: record for record in kept}
    _write(TEXTBOOK_FILE, _page(by_id[TEXTBOOK], sources["openstax"][TEXTBOOK]))
    _write(GUIDE_FILE, _markdown(by_id[GUIDE]))
    _write("README.md", _readme(kept))
    total = sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file())
    print(f"{len(kept)} documents, {total / 1e6:.1f} MB in {FOLDER}")


def _records(file: Path) -> dict[str, Record]:
    return {record["id"]: record for record in map(orjson.loads, file.read_bytes().splitlines())}


def _bundled(source: Record, chosen: Chosen) -> Record:
    if source["split"] != "val" or len(chosen.credits) != len(source["images"]):
        raise SystemExit(f"{chosen.id}: not the record whose credits stand here")
    return {
        **{key: source[key] for key in KEPT},
        "title": GUIDE_TITLE if chosen.id == GUIDE else source["title"],
        "author": chosen.author,
        "credits": chosen.credits,
        "links": source["links"],
        "split": source["split"],
    }


def _page(record: Record, source: Record) -> str:
    """The textbook section as it reads, with the credits that the book gives in its captions."""
    parts = [
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f"<title>{escape(record['title'])}</title>",
        f"<!-- By {record['author']}, {record['license'].partition(' (')[0]}: {CC_BY}",
        f"     {record['source']}, module {record['id'].rpartition('/')[2]}, commit "
        f"{record['commit']}",
        "     Shortened: formatting, exercises and pointers to web pages are left out. -->",
        "</head>", "<body>", "<article>", f"<h1>{escape(record['title'])}</h1>",
    ]  # fmt: skip
    figure_of = dict(source["caption_links"])
    paragraph: list[str] = []
    captions: dict[int, list[str]] = {}

    def finish() -> None:
        if paragraph:
            parts.append("<p>" + "\n".join(map(escape, paragraph)) + "</p>")
            paragraph.clear()
        for image, words in captions.items():
            parts.append(_figure(record, image, words))
        captions.clear()

    for index, sentence in enumerate(record["sentences"]):
        if index in TEXTBOOK_LEFT_OUT:
            continue
        if index in figure_of:
            captions.setdefault(figure_of[index], []).append(sentence)
            continue
        if captions or index in TEXTBOOK_PARAGRAPHS:
            finish()
        if index in TEXTBOOK_HEADINGS:
            parts.append(f"<h2>{escape(TEXTBOOK_HEADINGS[index])}</h2>")
        paragraph.append(sentence)
    finish()
    return "\n".join([*parts, "</article>", "</body>", "</html>", ""])


def _figure(record: Record, image: int, caption: list[str]) -> str:
    credit = record["credits"][image]
    words = escape(" ".join(caption)) + (f" (credit: {escape(credit)})" if credit else "")
    alt = escape(record["alts"][image], quote=True)
    return (
        f'<figure><img src="{record["images"][image]}" alt="{alt}">\n'
        f"<figcaption>{words}</figcaption></figure>"
    )


def _markdown(record: Record) -> str:
    """The guide as it reads: each block of text, then its images."""
    return (
        "\n\n".join(
            [
                f"<!-- By {record['author']}, MIT License (its words are in README.md).\n     "
                f"{record['source']}, {record['id'].partition('/')[2]}, commit\n     "
                f"{record['commit']}\n     Shortened: notes are left out. -->",
                f"# {record['title']}",
                *_blocks(record),
            ]
        )
        + "\n"
    )


def _blocks(record: Record) -> Iterator[str]:
    for index, text in enumerate(record["sentences"]):
        if index in GUIDE_HEADINGS:
            yield f"## {GUIDE_HEADINGS[index]}"
        yield text
        for sentence, image in record["links"]:
            if sentence == index:
                yield f"![{record['alts'][image]}]({record['images'][image]})"


def _readme(records: list[Record]) -> str:
    """Who made each document and each image, under which licence, and what was changed."""
    lines = [
        "# The documents of `sightline demo`",
        "",
        "Made by `scripts/make_demo.py` of the repository. `documents.jsonl` is a corpus:",
        "sentences, images and the true links. Two of its documents are here as articles too.",
        "",
        "In the textbook sections a true link ties a figure to the sentences of its caption and",
        "to those that cite it; in the guides, to the block of text that it stands in or follows.",
        "The documents are of the validation split: no model was trained on them, but settings",
        "were chosen on that split, and these documents out of those on which an earlier model did",
        "well. Scores on them flatter.",
        "",
        "Changes: the text was split into sentences, formatting was removed, images were made",
        "smaller; the articles leave out exercises, notes and pointers to web pages.",
    ]  # fmt: skip
    for record in records:
        licence = record["license"].partition(" (")[0]
        lines += [
            "",
            f"## {record['title']}",
            "",
            f"By {record['author']}. {licence}"
            + (f", {CC_BY}." if licence.startswith("CC BY") else " (below)."),
            f"Source: {record['source']}, {_place(record)}, commit {record['commit']}.",
            "",
        ]
        for image, credit in zip(record["images"], record["credits"], strict=True):
            lines.append(f"- `{image}`: {credit or 'no credit of its own in the source'}")
    quoted = FARMBOT_LICENCE.strip().splitlines()
    lines += ["", "## Licence of FarmBot's documentation", "", "```", *quoted, "```", ""]
    return "\n".join(lines)


def _place(record: Record) -> str:
    inside = record["id"].partition("/")[2]
    return f"module {inside}" if record["author"] == OPENSTAX else inside


def _write(name: str, text: str) -> None:
    (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
