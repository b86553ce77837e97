"""Saved album pages of imgur, as it wrote them until 2019: images and what was written under them.

    <div id="j1CNCZY" class="post-image-container" itemscope itemtype=".../ImageObject">
      <div class="post-image">
        <a href="//i.imgur.com/j1CNCZY.jpg" class="zoom"><img src="//i.imgur.com/j1CNCZYh.jpg"/></a>
      </div>
      <div class="post-image-meta">
        <p class="post-image-description" itemprop="description">The legs are cut.</p> ...

Known from a page that the tests of Discourse keep (github.com/discourse/discourse,
spec/fixtures/onebox/imgur.response, February 2019): the container, its id, `post-image` and
`<meta itemprop="contentURL" content="//i.imgur.com/j1CNCZY.gif">` in the place of the image, with
the item type VideoObject, for what moves. `post-image-description` is known from scripts for these
pages (greasyfork.org, 383132). The link `zoom` is how the pages are remembered, and not relied on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.problems import SightlineError
from sightline.readers.html_encoding import decode_html
from sightline.readers.html_limits import bound_html
from sightline.readers.native import open_for_reading

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_LONGEST_PAGE = 32 * 2**20  # bytes
# Where the address of the image is looked for: the image itself before its smaller versions.
_ADDRESSES = (
    ("[itemprop=contentURL]", "content"),
    ("a.zoom", "href"),
    ("[itemprop=contentURL]", "src"),
    ("img", "src"),
    ("img", "data-src"),
    ("source", "src"),
)
_FILE_NAME = re.compile(r"/([A-Za-z0-9]+)(\.[A-Za-z0-9]{2,5})(?:[?#]|\Z)")
_MOVING = frozenset((".gif", ".gifv", ".mp4", ".webm"))
_ID = re.compile(r"[A-Za-z0-9]+\Z")


@dataclass(frozen=True, slots=True)
class AlbumImage:
    """One image of an album: its id, its file name if the page says one, and its caption or ""."""

    id: str
    file_name: str | None
    caption: str
    moves: bool


def read_album(path: Path) -> list[AlbumImage] | None:
    """Give the images of a saved page, in their order; None if there is no such page."""
    try:
        if not path.is_file():
            return None
        with open_for_reading(path) as file:
            data = file.read(_LONGEST_PAGE)
    except (SightlineError, OSError):
        return None
    return parse_album(decode_html(data).text)


def parse_album(page: str) -> list[AlbumImage]:
    """Find all images of an album's HTML; a container that names no image is left out."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(bound_html(page).html)
    images = []
    for container in tree.css("div.post-image-container"):
        attributes = container.attributes
        name, extension = _file_name(container)
        image_id = attributes.get("id") or ""
        if not _ID.match(image_id):
            image_id = name
        if not image_id:
            continue
        moves = extension in _MOVING or (attributes.get("itemtype") or "").endswith("VideoObject")
        file_name = f"{image_id}{extension}" if extension else None
        images.append(AlbumImage(image_id, file_name, _caption(container), moves))
    return images


def _file_name(container: LexborNode) -> tuple[str, str]:
    """Give the name and the extension of the image's file, by its first address; "" if none."""
    for selector, attribute in _ADDRESSES:
        for node in container.css(selector):
            found = _FILE_NAME.search(node.attributes.get(attribute) or "")
            if found:
                return found[1], found[2].lower()
    return "", ""


def _caption(container: LexborNode) -> str:
    node = container.css_first(".post-image-description, [itemprop=description]")
    if node is None:
        return ""
    for line_break in node.css("br"):
        line_break.replace_with(" ")
    return " ".join(node.text().split())
