"""What a walk over an HTML page skips, counted: elements as a whole, and comments."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sightline.pages import LeftOut
from sightline.readers.html_tags import IMAGES

COMMENTS = "comments in the source"

_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)|(<\?.*?>)", re.S)
_XML_DECLARATION = re.compile(r"<?\?xml\s+version[^<>]*\?>?")
_IMAGES = ",".join(sorted(IMAGES - {"image"}))  # that one is a part of a drawing


def count_text(left_out: LeftOut, reason: str, text: str) -> None:
    """Count text that is left out, without the space that is not shown."""
    if size := len(" ".join(text.split())):
        left_out.text[reason] += size


def count_comment(node: LexborNode, left_out: LeftOut) -> None:
    """Count what is no text to a browser; a comment that nobody closes takes the rest of a page."""
    text = node.comment_content or node.html or ""
    if not _XML_DECLARATION.fullmatch(text):
        count_text(left_out, COMMENTS, text)


def whole_text(node: LexborNode, reason: str, left_out: LeftOut) -> str:
    """Give all text in an element that is not gone into; counts its images and comments."""
    child = node.child
    only_text = child is None or (child.tag == "-text" and child.next is None)
    if not only_text or node.tag == "template":
        html = node.html or ""
        if "<template" in html:  # the parser keeps what is in it to itself
            html = html.replace("<template", "<div").replace("</template", "</div")
            node = LexborHTMLParser(html).root or node
        left_out.images[reason] += len(node.css(_IMAGES))
        for comment in _COMMENT.findall(html):
            count_text(left_out, COMMENTS, "".join(comment))
    return node.text(deep=True)
