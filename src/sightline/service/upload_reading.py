"""An uploaded file as an article or document; runs in a worker process (`reader_pool`).

The upload lies in a private folder. What it is, is told by its name, its media type and its first
bytes; an archive is unpacked into the folder, within limits.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from sightline.alt_audit import Finding
from sightline.alt_text import audit_article
from sightline.articles import Article, ArticleImage, read_article
from sightline.choices import ARTICLE_SUFFIXES, Unit
from sightline.documents import FieldError, document_from_record
from sightline.fetching import Fetcher, FetchLimits
from sightline.image_headers import SUFFIXES, recognise
from sightline.images import Status
from sightline.pages import Page
from sightline.problems import SightlineError
from sightline.service.limits import ServiceLimits
from sightline.service.upload_names import harmless_path
from sightline.unpacking import image_extension
from sightline.zip_limits import Archive, ZipLimits

_DOCUMENT = ".json"
_ARCHIVE = ".zip"
#: The folder that an archive is unpacked into.
_UNPACKED = "unpacked"
_MEDIA_TYPES = {
    "text/html": ".html",
    "application/xhtml+xml": ".xhtml",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/zip": _ARCHIVE,
    "application/x-zip-compressed": _ARCHIVE,
    "application/json": _DOCUMENT,
}
_KNOWN = frozenset((*ARTICLE_SUFFIXES, _DOCUMENT, _ARCHIVE))
_MEMBERS = 2_000
_JSON_BYTES = 16 * 2**20
_ABSENT = "There is no such file among the uploaded images."
_FETCH = FetchLimits(image_bytes=20_000_000, total_bytes=100_000_000, seconds=10, total_seconds=20)


@dataclass(frozen=True, slots=True)
class Upload:
    """What to read: a file in a folder, and how."""

    folder: str
    #: Path of the file from the folder.
    file: str
    media_type: str
    unit: Unit
    fetch: bool
    #: Audit the alternative texts as well.
    audit: bool


@dataclass(frozen=True, slots=True)
class ReadImage:
    """An image; its file is a path from the folder."""

    name: str
    file: str | None
    position: int
    alt: str | None = None
    caption: str | None = None
    title: str | None = None
    decorative: bool = False
    status: Status | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class AuditedImage:
    """What the audit says of an image."""

    line: int | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ReadUpload:
    """What was read; without a page it is a document of the native format."""

    id: str
    kind: str
    sentences: tuple[str, ...]
    extra: dict[str, Any]
    images: tuple[ReadImage, ...]
    page: Page | None = None
    audit: tuple[AuditedImage, ...] = ()


def read_upload(upload: Upload, limits: ServiceLimits) -> ReadUpload:
    """Read an upload; raises `FieldError` that names the form field."""
    folder = Path(upload.folder)
    path = PurePosixPath(upload.file)
    try:
        suffix = _suffix(folder / path, upload.media_type)
        if suffix == _ARCHIVE:
            return _read_article(_unpack(folder, path, limits), upload, limits)
        if suffix == _DOCUMENT:
            return _read_document(folder, path, limits)
        named = path if path.suffix.lower() == suffix else path.with_name(path.name + suffix)
        (folder / path).rename(folder / named)
        return _read_article(named, upload, limits)
    except FieldError:
        raise
    except SightlineError as error:
        # What the service calls its folders is nobody's business.
        reason = str(error).replace(f"{folder}/", "").removeprefix(f"{_UNPACKED}/")
        raise FieldError("file", reason) from error


def _suffix(path: Path, media_type: str) -> str:
    """Tell what an upload is."""
    suffix = path.suffix.lower()
    if suffix in _KNOWN:
        return suffix
    with path.open("rb") as file:
        head = file.read(1024)
    if head.lstrip().startswith(b"%PDF-"):
        return ".pdf"
    if head.startswith(b"PK\3\4"):
        with Archive(path) as archive:
            if "word/document.xml" in archive:
                return ".docx"
            return ".epub" if "META-INF/container.xml" in archive else _ARCHIVE
    if recognise(head) == "HTML":
        return ".html"
    known = _MEDIA_TYPES.get(media_type.partition(";")[0].strip().lower())
    if known is None and _is_text(head):
        return ".txt"
    if known is None:
        raise SightlineError(
            f"{path.name}: is none of HTML, Markdown, text, PDF, DOCX, EPUB, JSON and ZIP."
        )
    return known


def _is_text(head: bytes) -> bool:
    """Say whether a file begins like text; its last character may be cut."""
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _unpack(folder: Path, path: PurePosixPath, limits: ServiceLimits) -> PurePosixPath:
    """Unpack the pages and images of an archive; gives the path of its article."""
    target = PurePosixPath(_UNPACKED)
    zip_limits = ZipLimits(_MEMBERS, limits.body_bytes, limits.unpacked_bytes)
    articles: list[PurePosixPath] = []
    with Archive(folder / path, zip_limits) as archive:
        names = {name: harmless_path(name) for name in archive.names() if name[-1:] != "/"}
        for name, member in names.items():
            if member is None:
                raise SightlineError(f"{name[:100]!r} in the archive leads out of its folder.")
        for name, member in names.items():
            if member is None or member.parts[0] == "__MACOSX" or member.name.startswith("."):
                continue
            suffix = member.suffix.lower()
            if suffix not in ARTICLE_SUFFIXES and suffix not in SUFFIXES:
                continue
            _write(folder / target / member, archive.read(name))
            if suffix in ARTICLE_SUFFIXES:
                articles.append(member)
    return target / _article_of(articles)


def _article_of(paths: list[PurePosixPath]) -> PurePosixPath:
    """Choose the article of an archive: the only one, or the index, nearest the top."""
    if not paths:
        raise SightlineError(
            "the archive holds no article (HTML, Markdown, text, PDF, DOCX, EPUB)."
        )
    depth = min(len(path.parts) for path in paths)
    nearest = [path for path in paths if len(path.parts) == depth]
    chosen = [path for path in nearest if path.stem.lower() == "index"] or nearest
    if len(chosen) > 1:
        some = ", ".join(repr(str(path)) for path in chosen[:3])
        raise SightlineError(f"the archive holds several articles ({some}); send one at a time.")
    return chosen[0]


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise SightlineError(f"{path.name!r} in the archive is a file and a folder.") from error


def _read_article(path: PurePosixPath, upload: Upload, limits: ServiceLimits) -> ReadUpload:
    folder = Path(upload.folder)
    fetch = Fetcher(_FETCH) if upload.fetch else None
    root = folder / path.parts[0] if path.parts[0] == _UNPACKED else folder
    article = read_article(
        folder / path, unit=upload.unit, fetch=fetch, images_beside=True, folders=[root]
    )
    article = _with_uploaded(article, folder)
    sentences = article.document.sentences
    check_size(sentences, len(article.images), limits, "file")
    audited = audit_article(article).images if upload.audit else ()
    identifier = str((folder / path).relative_to(root))
    return ReadUpload(
        id=identifier,
        kind=article.kind,
        sentences=sentences,
        extra=article.document.extra,
        images=tuple(_image(i, v, folder) for v, i in enumerate(article.images)),
        page=article.page,
        audit=tuple(AuditedImage(image.line, image.findings) for image in audited),
    )


def _with_uploaded(article: Article, folder: Path) -> Article:
    """Find images that were uploaded by their bare name, whatever folder the article says."""
    if all(image.content is not None for image in article.images):
        return article
    files = {file.name: file for file in folder.rglob("*") if file.is_file()}
    images = []
    for image in article.images:
        file = files.get(PurePosixPath(image.name.partition("?")[0]).name)
        if image.content is None and file is not None and file != article.path:
            image = replace(image, content=file, status=None, reason=None)
        images.append(image)
    return replace(article, images=tuple(images))


def _image(image: ArticleImage, number: int, folder: Path) -> ReadImage:
    """An image with its bytes, if it came with some, in a file."""
    content = image.content
    if isinstance(content, bytes):
        extension = image_extension(content) or "bin"
        file = folder / "embedded" / f"{number}.{extension}"
        _write(file, content)
        content = file
    return ReadImage(
        name=image.name,
        file=None if content is None else str(content.resolve().relative_to(folder.resolve())),
        position=image.position,
        alt=image.alt,
        caption=image.caption,
        title=image.title,
        decorative=image.decorative,
        status=image.status,
        reason=image.reason,
    )


def _read_document(folder: Path, path: PurePosixPath, limits: ServiceLimits) -> ReadUpload:
    """A document of the native format, whose images are among the uploaded ones."""
    data = (folder / path).read_bytes()
    if len(data) > _JSON_BYTES:
        raise SightlineError(f"the document has more than {_JSON_BYTES:,} bytes.")
    try:
        document = document_from_record(orjson.loads(data), allow_empty=True)
    except orjson.JSONDecodeError as error:
        raise SightlineError(f"the document is not JSON ({error}).") from None
    except FieldError as error:
        raise FieldError(f"file.{error.field}" if error.field else "file", error.reason) from None
    check_size(document.sentences, len(document.images), limits, "file")
    return ReadUpload(
        id=document.id,
        kind="document",
        sentences=document.sentences,
        extra={},
        images=tuple(_document_image(name, folder) for name in document.images),
    )


def _document_image(name: str, folder: Path) -> ReadImage:
    for part in (harmless_path(name), harmless_path(PurePosixPath(name).name)):
        if part is not None and (folder / part).is_file():
            return ReadImage(name, str(part), 0)
    return ReadImage(name, None, 0, status=Status.missing, reason=_ABSENT)


def check_size(
    sentences: tuple[str, ...] | list[str], images: int, limits: ServiceLimits, field: str
) -> None:
    """Refuse a document that is too large; raises `FieldError`."""
    characters = sum(map(len, sentences))
    counts = (
        (len(sentences), limits.sentences, "sentences"),
        (images, limits.images, "images"),
        (characters, limits.characters, "characters"),
        (len(sentences) * images, limits.pairs, "pairs of a sentence and an image"),
    )
    for count, most, what in counts:
        if count > most:
            where = (
                what if field == "" and what in ("sentences", "images") else field or "sentences"
            )
            raise FieldError(where, f"has {count:,} {what}, more than {most:,}, the limit")
