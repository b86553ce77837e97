"""What an `img` says of its image: which file it is, how large, and whether it is one to look at.

Pages give one image many sources: sizes in `srcset`, formats in `picture`, the true one of a lazy
image in an attribute of a script's. And many an `img` is no picture: spacers, icons, counters of
readers. Those are left out, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Attributes = Mapping[str, str | None]

#: Data URIs beyond this many characters are left out: an image of 12 MB in base64.
MAX_DATA_URI = 16 * 2**20
_MAX_CANDIDATES = 64  # of a srcset
# Sides up to these, in pixels, are not for looking at. Favicons, emoji and the faces beside
# comments are asked for at 16 to 48; thumbnails of articles begin at 50.
_PIXEL_SIDE, _ICON_SIDE = 3, 48

# Where scripts keep the true source of a lazy image.
_SRCSETS = {"srcset": False, "data-srcset": True, "data-lazy-srcset": True}
_LAZY_SOURCES = frozenset(
    (
        *("data-src", "data-lazy-src", "data-original", "data-original-src", "data-lazy"),
        *("data-full-src", "data-hi-res-src", "data-large-src", "data-actualsrc", "data-echo"),
        *("data-img-src", "data-src-large", "data-src-medium", "data-raw-src", "data-image-src"),
        *("data-delayed-url", "data-defer-src", "data-canonical-src", "data-ks-lazyload"),
    )
)
_CONTROL = re.compile(r"[\t\n\r]+")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")
# The patterns below are for the last part of a path, the host, and the last two parts.
_PLACEHOLDER = re.compile(
    r"(?:[\w.-]*[_.-])?(?:placeholder|transparent|lazyload|1x1)\.(?:gif|png|svg|jpe?g|webp)\Z"
    r"|(?:blank|spacer|lazy)\.(?:gif|png|svg|jpe?g|webp)\Z"
    r"|(?:clear|dot|empty|gr[ae]y|loader|loading|pixel|s|shim|spinner|trans)\.gif\Z",
    re.I,
)
_TRACKER_HOST = re.compile(
    r"doubleclick|scorecardresearch|quantserve|google-analytics|googleadservices|pixel\.|beacon"
    r"|stats\.|2o7\.net|omtrdc|imrworldwide|chartbeat|statcounter|histats|hitbox|webtrends"
    r"|metrics?\.|analytics\.|tracker?\.|adserver|adnxs|(?:^|\.)ads?\d?\.",
    re.I,
)
_TRACKER_NAME = re.compile(
    r"(?:b|p|track(?:er|ing)?|pixel|beacon|counter)\.(?:gif|php|aspx?|cgi)\Z|tr\Z", re.I
)
_BADGE_HOST = re.compile(r"shields\.io|badgen\.net|badge\.fury\.io", re.I)
_ICON_NAME = re.compile(
    r"(?:icons?|sprites?|emojis?|smil(?:ey|ie)s?|avatars?|favicons?)/.*\.(?:gif|png|svg|webp)\Z"
    r"|(?:.*[/_.-])?(?:icons?|sprites?|favicon|emoji|smiley|bullet|avatar|gravatar)(?=[_.-]|\d)"
    r"[^/]*\.(?:gif|png|svg|webp)\Z|.*(?:\.ico|badges?\.svg)\Z"
    # The signs of DocBook's boxes and of its navigation.
    r"|(?:.*/)?(?:note|tip|warning|caution|important|prev|next|up|home)\.(?:gif|png|svg)\Z"
    # Buttons and signs of other sites: btn_print.gif, icons/print.jpg, logo-facebook-2.png.
    r"|(?:.*/)?(?:btn|button)[_-][^/]*\.(?:gif|png|svg|webp)\Z"
    r"|icons?/(?:print|e?mail|rss|share|facebook|twitter|linkedin|pinterest)[^/]*\Z"
    r"|(?:.*/)?(?:logo|share|follow|social)[_-](?:facebook|twitter|linkedin|google|pinterest|rss|"
    r"whatsapp|instagram|youtube)(?![a-z])[^/]*\.(?:gif|png|svg|webp)\Z",
    re.I,
)
_ICON_CLASS = re.compile(
    r"(?:^|[\s_-])(?:icons?|emoji|smiley|avatar|gravatar|sprite|favicon)(?:$|[\s_-])", re.I
)
_STYLE_SIDE = re.compile(r"(?:^|;)\s*(width|height)\s*:\s*(\d+)(?:\.\d+)?px", re.I)
_DIGITS = re.compile(r"\s*(\d{1,6})(?:\.\d+)?\s*(?:px)?\s*\Z", re.I)


@dataclass(frozen=True, slots=True)
class ImageTag:
    """What one `img` says; `reason` tells why it is left out, None that it is not."""

    sources: tuple[str, ...] = ()
    alt: str | None = None
    title: str | None = None
    width: int | None = None
    height: int | None = None
    decorative: bool = False
    lazy: bool = False
    reason: str | None = None


def read_image_tag(attributes: Attributes, picture: Sequence[Attributes] = ()) -> ImageTag:
    """Read the attributes of an `img`, and those of the `source` elements of its `picture`."""
    sources, lazy = _sources(attributes, picture)
    width, height = _sides(attributes)
    role = attributes.get("role") or ""
    return ImageTag(
        sources=tuple(sources),
        # An `alt` without a value is an empty one; no `alt` is something else.
        alt=(attributes["alt"] or "") if "alt" in attributes else None,
        title=attributes.get("title") or None,
        width=width,
        height=height,
        decorative=role in ("presentation", "none") or attributes.get("aria-hidden") == "true",
        lazy=lazy,
        reason=_reason(sources, attributes, width, height),
    )


def is_remote(source: str) -> bool:
    """Say whether a source has to be fetched: it names a host or a scheme that is not data."""
    if source.startswith(("//", "\\\\")):
        return True
    scheme = _SCHEME.match(source)
    return scheme is not None and scheme[0].lower() not in ("data:", "file:")


def parse_srcset(text: str) -> Iterator[tuple[str, float]]:
    """Yield the candidates of a `srcset` with what their descriptors promise: pixels or density.

    A candidate ends at a comma after its descriptors, or at one that ends its URL: a comma within
    a URL is part of it, as data URIs need.
    """
    place = 0
    for _ in range(_MAX_CANDIDATES):
        found = _CANDIDATE.match(text, place)
        if found is None:
            return
        url, place = found[1], found.end()
        if url.endswith(","):
            yield url.rstrip(","), 1.0
            continue
        descriptor = _DESCRIPTORS.match(text, place)
        assert descriptor is not None  # it matches the empty string
        place = descriptor.end()
        yield url, _size(descriptor[1])


_CANDIDATE = re.compile(r"[\s,]*+([^\s,]\S*+)")
_DESCRIPTORS = re.compile(r"([^,]*+),?")
_SIZE = re.compile(r"(?:^|\s)(\d{1,6}(?:\.\d{1,4})?)([wx])(?=\s|$)")


def _size(descriptor: str) -> float:
    found = _SIZE.search(descriptor)
    return float(found[1]) if found else 1.0


def _sources(attributes: Attributes, picture: Sequence[Attributes]) -> tuple[list[str], bool]:
    """Give the sources of an image, best first, and whether a script would have shown it.

    What lies beside the page comes before what has to be fetched: a saved page keeps the files in
    `src` and leaves the addresses in `srcset`. Of the sizes, the largest is best.
    """
    sized: dict[str, float] = {}
    others: list[str] = []
    lazy = False
    for tag in (attributes, *picture):
        for name, value in tag.items():
            if value and name in _SRCSETS:
                lazy = lazy or _SRCSETS[name]
                for url, size in parse_srcset(value):
                    sized[url] = max(size, sized.get(url, 0.0))
            elif value and name in _LAZY_SOURCES and ("." in value or "/" in value):
                lazy = True
                others.append(value)
    others.append(attributes.get("src") or "")
    ranked = [*sorted(sized, key=sized.__getitem__, reverse=True), *others]
    cleaned = dict.fromkeys(_CONTROL.sub("", source).strip() for source in ranked)
    kept = [source for source in cleaned if source and not _is_placeholder(source)]
    return sorted(kept, key=is_remote) if len(kept) > 1 else kept, lazy


def _is_placeholder(source: str) -> bool:
    if source[:5].lower() == "data:":
        # A transparent pixel, or the outline that stands in for an image that is still to come.
        return len(source) < 256 or (source[:14].lower() == "data:image/svg" and len(source) < 1024)
    if source.startswith(("#", "about:", "javascript:")):
        return True
    return _PLACEHOLDER.match(_path(source).rpartition("/")[2]) is not None


def _path(source: str) -> str:
    """Give a URL without its query and fragment, and without what is too long to be a name."""
    return source[:2048].partition("?")[0].partition("#")[0]


def _sides(attributes: Attributes) -> tuple[int | None, int | None]:
    sides: dict[str, int] = {}
    for name in ("width", "height"):
        if found := _DIGITS.match(attributes.get(name) or ""):
            sides[name] = int(found[1])
    for name, value in _STYLE_SIDE.findall(attributes.get("style") or ""):
        sides[name.lower()] = int(value[:6])
    return sides.get("width"), sides.get("height")


def _reason(
    sources: Sequence[str], attributes: Attributes, width: int | None, height: int | None
) -> str | None:
    """Say why an image is not one to look at, or None."""
    given = [side for side in (width, height) if side is not None]
    if given and min(given) <= _PIXEL_SIDE:
        return "tracking pixel or spacer"
    if not sources:
        return "no source or only a placeholder"
    source = sources[0]
    if source[:5].lower() == "data:":
        if len(source) > MAX_DATA_URI:
            return "data URI too large"
        return "icon" if _is_icon_size(given) else None
    path = _path(source)
    host = path.split("/", 3)[2] if "//" in path[:8] and path.count("/") > 2 else ""
    folder, _, name = path.rpartition("/")
    if host and (_TRACKER_HOST.search(host) or _TRACKER_NAME.match(name)):
        return "tracking pixel or spacer"
    names = attributes.get("class")
    if _is_icon_size(given) or (names and _ICON_CLASS.search(names)):
        return "icon"
    if not given and _ICON_NAME.match(f"{folder.rpartition('/')[2]}/{name}"):
        return "icon"
    return "icon" if host and _BADGE_HOST.search(host) else None


def _is_icon_size(given: Sequence[int]) -> bool:
    return bool(given) and max(given) <= (_ICON_SIDE if len(given) == 2 else _ICON_SIDE // 2)
