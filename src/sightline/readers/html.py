"""HTML pages: bytes to a `Page`, by their main content, with figures and their captions.

The bytes become text (`html_encoding`), are made safe to parse (`html_limits`), parsed by Lexbor,
walked (`html_walk`), given captions (`html_captions`) and cut down to the content (`html_content`).
Nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from sightline.pages import Block, BlockKind, LeftOut, Page, PageImage
from sightline.problems import SightlineError
from sightline.readers.html_captions import assign_captions, drop_repeated_images
from sightline.readers.html_content import reasons_to_leave_out
from sightline.readers.html_encoding import decode_html
from sightline.readers.html_images import is_remote
from sightline.readers.html_limits import bound_html, never_closed
from sightline.readers.html_parts import Walk, WalkedImage
from sightline.readers.html_skipped import COMMENTS
from sightline.readers.html_tags import RENAMED
from sightline.readers.html_walk import walk_tree

MAX_BYTES = 32 * 2**20  # of a page; far above any that people read

_DESCRIBED_BY = re.compile(r"""aria-describedby\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
# What stands in a document type is dropped, whatever it is.
_OTHER_DOCTYPE = re.compile(
    r"""<!(?i:doctype(?!\s+html\s*+(?:(?:public|system)(?:\s*+(?:"[^">]*+"|'[^'>]*+'))*+\s*+)?>))"""
    r"[^>]*+"
)
_XML = re.compile(r"\s*<\?xml\s", re.I)
# Only a template with a shadow root is shown at once; its end tag then ends nothing.
_RENAMED_TAG = re.compile(
    r"<(/?)(?=frame(?:set)?[\s/>]|(?<!/)template\s[^<>]{0,200}?(?<=\s)shadowrootmode[\s=>])", re.I
)
# In XML, this is text; not so in a comment or a tag.
_CDATA = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)"
    r"""|</?[a-zA-Z](?:[^>"']++|"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))*+(?:>|\Z)""",
    re.S,
)
# Declarations of entities and the like; an HTML parser would take the first `>` for their end. The
# document type stands at the start, where only instructions and comments may precede it.
_DECLARATIONS = re.compile(
    r"((?:\s++|<\?[^?]*+(?:\?(?!>)[^?]*+)*+\?>|<!--[^-]*+(?:-(?!->)[^-]*+)*+-->)*+"
    r"""<!doctype(?:[^<>\[\]"']++|"[^"<>]*+"|'[^'<>]*+')*+)"""
    r"""(\[(?:[^\]"'<]++|"[^"]*+"|'[^']*+'|<!--[^-]*+(?:-(?!->)[^-]*+)*+-->"""
    r"""|<\?[^?]*+(?:\?(?!>)[^?]*+)*+\?>|<(?!!--|\?))*+\]\s*+)>""",
    re.I,
)
# In XML, names may have prefixes; those of a namespace that HTML parsers know say nothing to them.
_BOUND_PREFIX = re.compile(
    r"\sxmlns:([^\W\d][\w.-]*+)\s*+=\s*+"
    r"""["']http://www\.w3\.org/(?:1999/xhtml|2000/svg|1998/Math/MathML)["']"""
)
_PREFIXED_TAG = re.compile(r"<(/?)([^\W\d][\w.-]*+):(?=[a-zA-Z])")
# In XML, `<a id="x"/>` is an element that ends; to an HTML parser it is one that begins.
_ENDED_TAG = re.compile(
    r"<((?!(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)[\s/])"
    r"[a-zA-Z][\w:-]*+)((?:[^<>\"'/]++|\"[^\"]*+\"|'[^']*+'|/(?!>))*+)/>"
)


def read_html(
    data: bytes | str,
    *,
    main_content: bool = True,
    xml: bool = False,
    images_in_svg: bool = False,
) -> Page:
    """Read a page; raises `SightlineError` only if it is larger than the limit.

    `main_content` leaves out navigation, comments and the like; without it, all that is shown
    stays. `xml` reads XHTML by the rules of XML, as a page that begins with `<?xml` always is.
    `images_in_svg` takes the images that drawings are made of, as the covers of books are.
    """
    if len(data) > MAX_BYTES:
        raise SightlineError(f"The page is larger than {MAX_BYTES // 2**20} MiB, the limit.")
    left_out = LeftOut()
    if isinstance(data, bytes):
        decoded = decode_html(data)
        data = decoded.text
        left_out.text["invalid bytes"] = decoded.replaced
    if "\0" in data:
        left_out.text["invalid bytes"] += data.count("\0")
        data = data.replace("\0", "")
    if xml or _XML.match(data):
        data = _xml_as_html(data)
    bounded = bound_html(_RENAMED_TAG.sub(rf"<\1{RENAMED}", data))
    left_out.text["scripts and styles"] = bounded.raw_lost
    doctypes = sum(map(len, _OTHER_DOCTYPE.findall(data)))
    left_out.text[COMMENTS] = bounded.comments_lost + doctypes
    left_out.text["unfinished tag"] = never_closed(data)
    left_out.images["beyond the limits"] = bounded.images_lost
    # Half a surrogate pair can only come from a caller's own string.
    parser = LexborHTMLParser(bounded.html.encode("utf-8", "replace"))
    if parser.root is None:
        return Page(None, (), (), left_out=LeftOut(+left_out.text, +left_out.images))
    walk = walk_tree(parser.root, _descriptions(data), images_in_svg)
    left_out.update(walk.left_out)
    walk.left_out = left_out
    drop_repeated_images(walk)
    assign_captions(walk)
    return _page(walk, main_content)


def _xml_as_html(data: str) -> str:
    if (declared := _DECLARATIONS.match(data)) is not None:
        data = _as_other_doctype(declared) + data[declared.end() :]
    if "<![CDATA[" in data:
        data = _CDATA.sub(_unwrap, data)
    if prefixes := frozenset(_BOUND_PREFIX.findall(data)):
        data = _PREFIXED_TAG.sub(lambda t: f"<{t[1]}" if t[2] in prefixes else t[0], data)
    return _ENDED_TAG.sub(r"<\1\2></\1>", data)


def _as_other_doctype(found: re.Match[str]) -> str:
    """Put declarations into a document type of their own, which is dropped and counted."""
    return f"{found[1]}><!doctype {re.sub('[<>]', ' ', found[2])}>"


def _unwrap(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else escape(found[1], quote=False)


def _descriptions(html: str) -> frozenset[str]:
    if "aria-describedby" not in html:  # much faster than the pattern, which most pages lack
        return frozenset()
    found = _DESCRIBED_BY.findall(html)
    return frozenset(name for values in found for value in values for name in value.split())


def _page(walk: Walk, main_content: bool) -> Page:
    """Make a page of what is content; what is not is counted."""
    blocks: Sequence[str | None] = [None] * len(walk.blocks)
    images: Sequence[str | None] = [None] * len(walk.images)
    if main_content and walk.boxes:
        blocks, images = reasons_to_leave_out(walk)
    kept_blocks = []
    # The new index of each block, or of the last one before it that is kept.
    places = []
    for block, reason in zip(walk.blocks, blocks, strict=True):
        if reason is None:
            kept_blocks.append(Block(block.kind, block.text, block.level))
        else:
            walk.left_out.text[reason] += len(block.text)
        places.append(len(kept_blocks) - 1)
    kept_images = []
    for image, reason in zip(walk.images, images, strict=True):
        if reason is None:
            kept_images.append(_image(image, walk, blocks, places))
        else:
            walk.left_out.images[reason] += 1
    title = _title(walk.title, kept_blocks)
    if walk.title and title != walk.title:
        walk.left_out.text["rest of the title"] = len(walk.title) - len(title or "")
    left_out = LeftOut(+walk.left_out.text, +walk.left_out.images)
    return Page(title, tuple(kept_blocks), tuple(kept_images), walk.language, left_out)


def _image(
    image: WalkedImage, walk: Walk, reasons: Sequence[str | None], places: Sequence[int]
) -> PageImage:
    captions = list(dict.fromkeys(image.captions))
    sources = _resolved(image.tag.sources, walk.base)
    inside = image.offset is not None and reasons[image.block] is None
    return PageImage(
        source=sources[0],
        block=places[image.block] if image.block >= 0 else -1,
        offset=image.offset if inside else None,
        alt=image.tag.alt,
        title=image.tag.title,
        caption=" ".join(walk.blocks[index].text for index in captions) or None,
        caption_blocks=tuple(places[index] for index in captions if reasons[index] is None),
        width=image.tag.width,
        height=image.tag.height,
        decorative=image.decorative,
        alternatives=tuple(sources[1:]),
    )


def _resolved(sources: Sequence[str], base: str | None) -> list[str]:
    """Resolve sources against the page's base; what lay beside the page stays as another source.

    A saved page may name its old address as base and its files by their new place.
    """
    if not base:
        return list(sources)
    resolved = []
    for source in sources:
        try:
            resolved.append(source if source[:5].lower() == "data:" else urljoin(base, source))
        except ValueError:  # no URL, such as http://[
            resolved.append(source)
    return list(dict.fromkeys([*resolved, *(s for s in sources if not is_remote(s))]))


def _title(title: str | None, blocks: Sequence[Block]) -> str | None:
    """Give the headline if the page's title repeats it (`Headline - Newspaper`), else the title."""
    headline = next((b.text for b in blocks if b.kind is BlockKind.HEADING and b.level == 1), None)
    if title is None or (headline and headline.casefold() in title.casefold()):
        return headline
    return title
