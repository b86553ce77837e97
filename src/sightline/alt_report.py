"""What `sightline alt` says of an article, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from sightline.alt_text import ArticleAlts, Candidate, ImageAlt
from sightline.alt_writing import Written
from sightline.confidence import confidence_text
from sightline.progress import counted
from sightline.tag_attributes import one_line

_LONGEST_SHOWN = 160  # characters of a text in the report


def alt_record(alts: ArticleAlts, written: Written | None = None) -> dict[str, Any]:
    """Give the JSON object of an article."""
    record: dict[str, Any] = {
        "article": alts.article.document.id,
        "findings": alts.findings,
        "images": [_image_record(image) for image in alts.images],
        "left_out": alts.article.page.left_out.to_record().get("images", {}),
    }
    if written is not None:
        record["written"] = [
            {
                "image": index,
                "alt": one_line(candidate.text),
                "sentence": candidate.sentence,
                "described": index in written.described,
            }
            for index, candidate in written.written.items()
        ]
        record["without_candidate"] = list(written.no_candidate)
        record["not_found_in_source"] = list(written.not_found)
    return record


def _image_record(image: ImageAlt) -> dict[str, Any]:
    record: dict[str, Any] = {
        "index": image.index,
        "image": image.name,
        "line": image.line,
        "alt": image.alt,
        "caption": image.caption,
        "findings": [
            {"code": str(finding.code), "message": finding.message, "line": finding.line}
            for finding in image.findings
        ],
    }
    if image.status is not None:
        record |= {"status": image.status, "reason": image.reason}
        record["candidates"] = [
            {
                "sentence": candidate.sentence,
                "text": candidate.text,
                "score": candidate.score,
                "confidence": candidate.confidence,
                "linked": candidate.linked,
                "fits": candidate.fits,
                "span": list(candidate.span),
                "section": candidate.section,
            }
            for candidate in image.candidates
        ]
    return record


def alt_lines(
    alts: ArticleAlts, written: Written | None = None, *, every_image: bool = True
) -> Iterator[str]:
    """Yield the report of an article line by line; of all images, or of those with a finding."""
    if not every_image and not alts.findings:
        return
    name = one_line(alts.article.document.id)
    yield f"{name}: {counted(len(alts.images), 'image')}, {counted(alts.findings, 'finding')}"
    for image in alts.images if every_image else filter(attrgetter("findings"), alts.images):
        yield from _image_lines(image, name, written)
    for reason, count in sorted(alts.article.page.left_out.images.items()):
        yield f"  not looked at: {counted(count, 'image')} ({reason})"


def _image_lines(image: ImageAlt, article: str, written: Written | None) -> Iterator[str]:
    place = f"{article}:{image.line}: " if image.line is not None else ""
    yield f"  {place}image {image.index + 1}, {_shown(image.name)}"
    yield f"    alt      {_quoted(image.alt)}"
    if image.caption:
        yield f"    caption  {_quoted(image.caption)}"
    for finding in image.findings:
        yield f"    ! {finding.code}: {one_line(finding.message)}"
    if image.reason:
        yield f"    {image.status}: {one_line(image.reason)}"
    if image.candidates:
        yield "    sentences on offer, a linked one first, then by score:"
    for number, candidate in enumerate(image.candidates, 1):
        yield f"    {number}. {_quoted(candidate.text)}"
        yield f"       {', '.join(_facts(candidate))}"
    if written is not None and image.index in written.written:
        yield f"    written: {_quoted(written.written[image.index].text)}"
    elif written is not None and image.index in written.not_found:
        yield "    not written: its place in the source is not known"
    elif written is not None and image.index in written.no_candidate:
        yield "    not written: no sentence of a fitting length reaches the limit"


def _facts(candidate: Candidate) -> Iterator[str]:
    yield f"score {candidate.score:.2f}"
    if candidate.confidence is not None:
        yield f"confidence {confidence_text(candidate.confidence)}"
    if candidate.linked:
        yield "linked"
    if not candidate.fits:
        yield "too long or too short to be read out"
    yield f"sentence {candidate.sentence + 1}"
    if candidate.section:
        yield f"under {_quoted(candidate.section)}"


def _quoted(text: str | None) -> str:
    if text is None:
        return "(none)"
    return f'"{_shown(text)}"' if text.strip() else "(empty)"


def _shown(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST_SHOWN else f"{line[: _LONGEST_SHOWN - 1]}…"
