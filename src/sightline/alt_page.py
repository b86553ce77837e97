"""The report of `alt` as a page: each image with its text, what is wrong, and what is on offer.

One HTML file that asks for no other and runs no script. Everything that the article says is
escaped, its pictures are encoded anew, and the policy in the head lets nothing but the page's own
style in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sightline.alt_text import ArticleAlts, Candidate, ImageAlt
from sightline.articles import Article
from sightline.confidence import confidence_text
from sightline.decode_pool import DecodePool
from sightline.html_writing import clean, page_head, page_part
from sightline.progress import counted
from sightline.shown_article import Picture, cut, encode_picture

_SIDE = 320  # pixels of a picture
_NAME_SHOWN, _TEXT_SHOWN = 120, 2_000


def alt_page(alts: ArticleAlts, pictures: Mapping[int, Picture], facts: Sequence[str] = ()) -> str:
    """Render the page; `pictures` by the index of the image, as far as there are any."""
    page = alts.article.page
    title = f"Alternative texts: {clean(cut(page.title or alts.article.path.stem, 200))}"
    images = "".join(_image(image, pictures.get(image.index)) for image in alts.images)
    return (
        f"{page_head(title, [page_part('sample_page.css'), page_part('alt_page.css')])}<body>\n"
        f'<header><h1 dir="auto">{title}</h1>\n{_summary(alts)}</header>\n'
        f"<main>\n{images or '<p>The article has no image.</p>'}{_left_out(alts)}</main>\n"
        f'<footer class="soft">{" · ".join(map(clean, facts))}</footer>\n</body>\n</html>\n'
    )


def alt_pictures(article: Article, pool: DecodePool) -> dict[int, Picture]:
    """The images of an article that can be shown, decoded in isolation and made small."""
    contents = {v: i.content for v, i in enumerate(article.images) if i.content is not None}
    decoded = pool.decode_many(contents.values(), _SIDE)
    return {
        index: encode_picture(result.pixels, _SIDE)
        for index, result in zip(contents, decoded, strict=True)
        if result.pixels is not None
    }


def _summary(alts: ArticleAlts) -> str:
    """What was found in all, with the way to the images that it was found in."""
    words = f"{counted(len(alts.images), 'image')}, {counted(alts.findings, 'finding')}."
    counts = Counter(str(finding.code) for image in alts.images for finding in image.findings)
    rows = "".join(
        f'<tr><th scope="row">{code}</th><td>{count}</td><td>{_places(alts, code)}</td></tr>\n'
        for code, count in counts.most_common()
    )
    table = (
        '<table>\n<thead><tr><th scope="col">finding</th><th scope="col">times</th>'
        f'<th scope="col">images</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n'
        if rows
        else ""
    )
    return (
        f"<p>{words} The sentences on offer are the article’s own: the parts that a picture "
        f"belongs to, not descriptions of it. Read them before you publish them.</p>\n{table}"
    )


def _places(alts: ArticleAlts, code: str) -> str:
    found = [i.index + 1 for i in alts.images if any(f.code == code for f in i.findings)]
    return " ".join(f'<a class="badge" href="#image-{number}">{number}</a>' for number in found)


def _image(image: ImageAlt, picture: Picture | None) -> str:
    number = image.index + 1
    line = "" if image.line is None else f", line {image.line:,}"
    return (
        f'<article aria-labelledby="image-{number}">\n<h2 id="image-{number}">Image {number}</h2>\n'
        f'<p class="soft"><bdi>{clean(cut(image.name, _NAME_SHOWN))}</bdi>{line}</p>\n'
        f'<div class="sides">\n<figure>{_picture(image, picture)}</figure>\n<div>\n'
        f"<dl>\n<dt>Its text</dt><dd>{_text(image.alt)}</dd>\n"
        f"{_caption(image)}</dl>\n"
        f"{_findings(image)}{_candidates(image)}</div>\n</div>\n</article>\n"
    )


def _findings(image: ImageAlt) -> str:
    items = "".join(
        f"<li><strong>{finding.code}</strong> {clean(finding.message)}</li>\n"
        for finding in image.findings
    )
    return f'<ul class="findings">{items}</ul>\n' if items else "<p>Nothing is wrong with it.</p>\n"


def _caption(image: ImageAlt) -> str:
    return f"<dt>Its caption</dt><dd>{_text(image.caption)}</dd>\n" if image.caption else ""


def _picture(image: ImageAlt, picture: Picture | None) -> str:
    if picture is None:
        known = filter(None, ((image.status or "").replace("_", " "), image.reason))
        return f'<div class="broken">{clean(": ".join(known) or "no picture")}</div>'
    # Its text is beside it: read out here as well, it would be heard twice.
    return (
        f'<img alt="Image {image.index + 1}" width="{picture.width}" height="{picture.height}" '
        f'src="{picture.address}">'
    )


def _candidates(image: ImageAlt) -> str:
    if not image.candidates:
        return ""
    items = "".join(
        f'<li><bdi class="text">{clean(cut(candidate.text, _TEXT_SHOWN))}</bdi>'
        f'<span class="soft">{", ".join(_facts(candidate))}</span></li>\n'
        for candidate in image.candidates
    )
    return f"<h3>Sentences on offer, a linked one first, then by score</h3>\n<ol>\n{items}</ol>\n"


def _facts(candidate: Candidate) -> Iterator[str]:
    if candidate.linked:
        yield "<b>linked</b>"
    yield f"score {candidate.score:.2f}"
    if candidate.confidence is not None:
        yield f"confidence {clean(confidence_text(candidate.confidence))}"
    if not candidate.fits:
        yield "too long or too short to be read out"
    yield f"sentence {candidate.sentence + 1:,}"
    if candidate.section:
        yield f"under <bdi>“{clean(cut(candidate.section, _NAME_SHOWN))}”</bdi>"


def _left_out(alts: ArticleAlts) -> str:
    rows = sorted(alts.article.page.left_out.images.items())
    items = "".join(f"<li>{counted(n, 'image')}: {clean(reason)}</li>" for reason, n in rows)
    return f"<h2>Not looked at</h2>\n<ul>{items}</ul>\n" if items else ""


def _text(text: str | None) -> str:
    if text is None:
        return "<em>none</em>"
    return f"<bdi>{clean(cut(text, _TEXT_SHOWN))}</bdi>" if text.strip() else "<em>empty</em>"
