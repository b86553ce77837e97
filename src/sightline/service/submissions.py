"""What a request hands in: a document or an article with its images, and how to link it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from fastapi import Request
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from sightline.articles import Article, ArticleImage
from sightline.choices import ARTICLE_SUFFIXES
from sightline.documents import Document, FieldError
from sightline.image_headers import recognise
from sightline.images import Status
from sightline.pages import Block, BlockKind, Page, PageImage
from sightline.service.engine import Engine, WaitingImage
from sightline.service.errors import ServiceError, busy, from_validation, invalid
from sightline.service.limits import ServiceLimits
from sightline.service.reader_pool import ReaderPool, StorageError
from sightline.service.schemas import ArticleOptions, LinkOptions, LinkRequest
from sightline.service.upload_names import free_path, harmless_path
from sightline.service.upload_reading import AuditedImage, ReadUpload, Upload, check_size
from sightline.unpacking import image_extension

JSON = "application/json"
_FORM = "multipart/form-data"
_PARSED_AT_ONCE = 64 * 1024
_MOST_FIELDS = 20
#: Of a form field; the web page sends back a whole record in one.
_FIELD_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Submission:
    """A document to link, and how; `article` is drawn, whether it came as one or not."""

    document: Document
    images: tuple[WaitingImage, ...]
    article: Article
    options: LinkOptions
    #: It came as an article, whose record says more than that of a document.
    is_article: bool
    audit: tuple[AuditedImage, ...] = ()


@dataclass(frozen=True, slots=True)
class Reception:
    """Takes requests in; `folder` is where uploads lie while they are worked on."""

    folder: Path
    readers: ReaderPool
    limits: ServiceLimits
    fetch: bool
    room: asyncio.Semaphore

    @asynccontextmanager
    async def take(
        self, request: Request, engine: Engine, *, audit: bool = False, others: bool = False
    ) -> AsyncIterator[Submission]:
        """Read a request; what it uploaded is removed at the end.

        `others` lets form fields pass that are none of ours.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == JSON and not audit:
            yield await self._from_json(await _body(request), engine)
        elif kind == _FORM:
            form = await read_form(request, self.limits)
            async with self.room:
                folder = self._new_folder()
                try:
                    yield await self._from_form(form, folder, engine, audit, others)
                finally:
                    engine.threads.submit(shutil.rmtree, folder, ignore_errors=True)
                    await form.close()
        else:
            expected = _FORM if audit else f"{JSON} or {_FORM}"
            raise ServiceError(
                415, f"The body is {kind or 'of no stated type'}; expected {expected}.",
                [("Content-Type", f"expected {expected}")],
            )  # fmt: skip

    def _new_folder(self) -> Path:
        try:
            return Path(tempfile.mkdtemp(dir=self.folder))
        except OSError as error:
            raise busy(503, f"The upload cannot be stored: {error.strerror}.") from None

    async def _from_json(self, body: bytes, engine: Engine) -> Submission:
        if len(body) <= _PARSED_AT_ONCE:
            return _from_json(body, self.limits)
        return await engine.in_thread(_from_json, body, self.limits)

    async def _from_form(
        self, form: FormData, folder: Path, engine: Engine, audit: bool, others: bool
    ) -> Submission:
        options = _form_options(form, others)
        try:
            upload = await engine.in_thread(_store, form, folder)
            upload = replace(upload, unit=options.unit, fetch=self.fetch, audit=audit)
            read = await self.readers.read(upload)
        except FieldError as error:
            raise invalid(error.field or "file", error.reason) from None
        except StorageError as error:
            raise busy(503, str(error)) from None
        article = _as_article(read, folder)
        if article is not None:
            images = tuple(
                WaitingImage(i.name, i.content, i.status or Status.missing, i.reason)
                for i in article.images
            )
            return Submission(article.document, images, article, options, True, read.audit)
        if audit:
            raise invalid("file", "expected an article; a document has no alternative texts")
        images = tuple(
            WaitingImage(i.name, _within(folder.resolve(), i.file), Status.missing, i.reason)
            for i in read.images
        )
        return _of_document(read.id, read.sentences, images, options)


# ---- JSON


def _from_json(body: bytes, limits: ServiceLimits) -> Submission:
    try:
        asked = LinkRequest.model_validate_json(body)
    except ValidationError as error:
        raise from_validation(error) from None
    try:
        check_size(asked.sentences, len(asked.images), limits, "")
    except FieldError as error:
        raise invalid(error.field or "body", error.reason) from None
    images = tuple(
        WaitingImage(image.id or f"image-{number}", image.data)
        for number, image in enumerate(asked.images, 1)
    )
    return _of_document(asked.id or "document", tuple(asked.sentences), images, asked)


def _of_document(
    identifier: str,
    sentences: tuple[str, ...],
    images: tuple[WaitingImage, ...],
    options: LinkOptions,
) -> Submission:
    """A document, drawn as an article of one paragraph a sentence with its images at the end."""
    document = Document(identifier, sentences, tuple(image.name for image in images))
    blocks = tuple(Block(BlockKind.PARAGRAPH, sentence or " ") for sentence in sentences)
    shown = tuple(PageImage(image.name, len(blocks) - 1) for image in images)
    page = Page(None, blocks, shown)
    spans = [list(span) for span in page.spans()]
    extra: dict[str, Any] = {"title": None, "lang": None, "spans": spans, "left_out": {}}
    article = Article(
        Path(identifier),
        "text",
        page,
        replace(document, extra=extra),
        tuple(ArticleImage(image.name, image.content, len(page.text)) for image in images),
    )
    return Submission(document, images, article, options, False)


async def _body(request: Request) -> bytes:
    return b"".join([piece async for piece in request.stream()])


# ---- forms


async def read_form(request: Request, limits: ServiceLimits) -> FormData:
    """The parts of a form; files of over a megabyte lie on the disk."""
    try:
        return await request.form(
            max_files=limits.images + 1, max_fields=_MOST_FIELDS, max_part_size=_FIELD_BYTES
        )
    except HTTPException as error:
        raise ServiceError(400, f"The form cannot be read: {error.detail}") from None
    except OSError as error:
        raise busy(503, f"The upload cannot be stored: {error.strerror}.") from None


def _form_options(form: FormData, others: bool) -> ArticleOptions:
    fields: dict[str, str] = {}
    for name, value in form.multi_items():
        if name in ("file", "images"):
            if not isinstance(value, UploadFile):
                raise invalid(name, "expected a file with a name, found a text field")
        elif not isinstance(value, str):
            raise invalid(name, "no such field for a file; expected file or images")
        elif name in fields:
            raise invalid(name, "comes twice")
        elif not others or name in ArticleOptions.model_fields:
            fields[name] = value
    try:
        return ArticleOptions.model_validate(fields)
    except ValidationError as error:
        raise from_validation(error) from None


def _store(form: FormData, folder: Path) -> Upload:
    """Write the uploaded files into the folder, under their names where these are harmless."""
    files = [part for part in form.getlist("file") if isinstance(part, UploadFile)]
    if len(files) != 1:
        raise invalid("file", f"expected one file, found {len(files)}")
    taken = {"unpacked", "embedded"}
    path = free_path(_path_of(files[0], "file"), taken)
    _copy(files[0], folder / path)
    for image in form.getlist("images"):
        if isinstance(image, UploadFile):
            named = free_path(_image_path(image), taken)
            if named.suffix.lower() in ARTICLE_SUFFIXES:
                raise invalid("images", f"{named.name!r} is an article; send it as file")
            _copy(image, folder / named)
    media_type = files[0].content_type or ""
    return Upload(str(folder), str(path), media_type, "sentence", fetch=False, audit=False)


def _path_of(part: UploadFile, field: str) -> PurePosixPath:
    path = harmless_path(part.filename or "")
    if path is None:
        raise invalid(field, f"the file name {(part.filename or '')[:100]!r} cannot be used")
    return path


def _image_path(part: UploadFile) -> PurePosixPath:
    """A name with the suffix of an image: one that was pasted may have none."""
    path = _path_of(part, "images")
    head = part.file.read(1024)
    part.file.seek(0)
    extension = image_extension(head)
    if path.suffix or extension is None or recognise(head) is None:
        return path
    return path.with_name(f"{path.name}.{extension}")


def _copy(part: UploadFile, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            shutil.copyfileobj(part.file, file)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise invalid("images", f"{path.name!r} is a file and a folder") from None
    except OSError as error:
        raise StorageError(f"The upload cannot be stored: {error.strerror}.") from error


# ---- what the reader gave back


def _as_article(read: ReadUpload, folder: Path) -> Article | None:
    """The article again, in the service's own process."""
    if read.page is None:
        return None
    root = folder.resolve()
    images = tuple(
        ArticleImage(
            name=image.name,
            content=_within(root, image.file),
            position=image.position,
            alt=image.alt,
            caption=image.caption,
            title=image.title,
            decorative=image.decorative,
            status=image.status,
            reason=image.reason,
        )
        for image in read.images
    )
    names = tuple(image.name for image in images)
    document = Document(read.id, read.sentences, names, extra=read.extra)
    kind: Any = read.kind
    return Article(Path(read.id), kind, read.page, document, images)


def _within(root: Path, file: str | None) -> Path | None:
    """A file of the upload; the worker's word is not enough for where it lies."""
    if file is None:
        return None
    path = (root / file).resolve()
    return path if path.is_relative_to(root) else None
