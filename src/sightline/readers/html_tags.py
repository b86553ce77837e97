"""What HTML's elements are to a reader: blocks, boxes, things to skip, things that are hidden."""

from __future__ import annotations

import re
from functools import lru_cache

from sightline.pages import BlockKind
from sightline.readers.html_images import Attributes


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What kind of block the text in an element is.
KINDS = {
    **{f"h{level}": BlockKind.HEADING for level in range(1, 7)},
    "li": BlockKind.LIST_ITEM,
    "dt": BlockKind.TERM,
    "dd": BlockKind.DEFINITION,
    "blockquote": BlockKind.QUOTE,
    "td": BlockKind.TABLE_CELL,
    "th": BlockKind.TABLE_CELL,
    "figcaption": BlockKind.CAPTION,
    "caption": BlockKind.CAPTION,
    "pre": BlockKind.CODE,
    "listing": BlockKind.CODE,
    "xmp": BlockKind.CODE,
}
#: Kinds whose level is how deep they are nested, and the elements that nest them.
NESTED = frozenset((BlockKind.LIST_ITEM, BlockKind.TERM, BlockKind.DEFINITION, BlockKind.QUOTE))
NESTING = _names("ul ol menu dir dl blockquote")
#: Elements that begin and end a block; boxes are those that hold others.
BOXES = _names(
    "article aside blockquote body center dd details dialog div dl dt fieldset figure footer form"
    " header html li main menu nav ol section table tbody td th tr ul"
)
BLOCKS = BOXES | _names(
    "address caption dir figcaption h1 h2 h3 h4 h5 h6 hgroup hr legend listing p plaintext pre"
    " search summary tfoot thead xmp"
)
#: Boxes in which an image and the text after it go together.
HOLDERS = _names("aside blockquote dd details div dt figure li section td th tr")
#: What comes before the names of `frameset`, `frame` and templates that are shown, for the parser,
#: which would drop the text in them or keep it to itself.
RENAMED = "sightline-"
_RENAMED_NAME = re.compile(rf"(?<=<)(/?){RENAMED}(?=template|frame)", re.I)
#: What is skipped whole, and what to call it.
SKIPPED = {
    **dict.fromkeys(("script", "style", "template", "noembed", "noframes"), "scripts and styles"),
    **dict.fromkeys(("select", "textarea", "datalist"), "controls"),
    **dict.fromkeys(("annotation", "annotation-xml"), "formula source"),
    **dict.fromkeys(("iframe", "embed", "video", "audio", "canvas", "applet"), "embedded media"),
    "svg": "inline svg",
}
#: Those of them that count as images.
SKIPPED_IMAGES = frozenset(("embedded media", "inline svg"))
#: The text of these is left out, but the images in them are looked at.
MUTED = {"button": "controls", "noscript": "noscript", "rt": "ruby", "rp": "ruby"}
IMAGES = _names("img image amp-img amp-anim")

_HIDDEN_STYLE = re.compile(
    r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))", re.I
)
_HIDDEN_CLASS = re.compile(
    r"(?:^|\s)(?:sr-only|visually-?hidden|screen-?reader(?:-text|-only)?|assistive-text|offscreen"
    r"|element-invisible|hide-text)(?:\s|$)",
    re.I,
)
_ARTICLES = _names("html body main article")
_ARTICLE_BODY = re.compile(r"article[-_]?(?:body|content|text)", re.I)
_PERMALINK = re.compile(r"(?:^|\s)(?:mw-editsection|headerlink|header-?anchor)(?:\s|$)", re.I)
_FIGURE = re.compile(r"(?:^|\s)(?:informal)?figure(?:\s|$)", re.I)
_TITLE = re.compile(r"(?:^|\s)title(?:\s|$)", re.I)
_CAPTION = re.compile(r"(?:^|[\s_-])(?:\w*caption(?:s|text|ed)?|cutline)(?:$|[\s_-])", re.I)


# What the attributes of an element say of it, as bits: an enum's take four times the time.
#: It is not shown.
HIDDEN = 1
#: It is shown, but its text is not for reading: it is for screen readers only, or decoration.
SILENT = 2
DECORATION = 4
PERMALINK = 8
#: It is a caption, or holds an image and its caption.
CAPTION = 16
#: It is a figure, and the title of something, which in a figure is its caption: so DocBook writes.
FIGURE = 32
TITLE = 64


def with_own_names(text: str) -> str:
    """Give text as the page has it: tags in titles and attributes were renamed as all are."""
    return _RENAMED_NAME.sub(r"\1", text) if RENAMED in text else text


def holds_article(tag: str, attributes: Attributes) -> bool:
    """Say whether an element is called the body of the page or of its article."""
    if tag in _ARTICLES:
        return True
    return any(_ARTICLE_BODY.fullmatch(attributes.get(key) or "") for key in ("id", "itemprop"))


def read_marks(attributes: Attributes) -> int:
    """Read the attributes that matter to every element."""
    found = 0
    if (names := attributes.get("class")) is not None:
        found = _class_marks(names)
    if (style := attributes.get("style")) is not None and _HIDDEN_STYLE.search(style):
        found |= HIDDEN
    if "hidden" in attributes:
        found |= HIDDEN
    if attributes.get("aria-hidden") == "true":
        found |= SILENT | DECORATION
    return found


@lru_cache(maxsize=4096)
def _class_marks(names: str) -> int:
    found = 0
    if _HIDDEN_CLASS.search(names):
        found |= SILENT
    if _PERMALINK.search(names):
        found |= PERMALINK
    if _CAPTION.search(names):
        found |= CAPTION
    if _FIGURE.search(names):
        found |= FIGURE
    if _TITLE.search(names):
        found |= TITLE
    return found
