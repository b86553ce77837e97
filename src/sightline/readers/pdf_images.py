"""The images of a PDF page: where they stand, and what they show, drawn by PDFium."""

from __future__ import annotations

import ctypes
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

from sightline.pages import LeftOut
from sightline.readers.pdf_layout import Box

MAX_OBJECTS = 100_000  # of a page
MAX_PIXELS = 50_000_000  # of an image, as in `images.Limits`
_MAX_DEPTH = 40  # of groups of objects within each other; PDFium reads no deeper ones
_LONGEST_SIDE = 1_600  # pixels of what is drawn: plenty to look at, cheap to pack
_MOST_HASHED = 64 * 2**20  # bytes as they stand in the file

Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ImageObject:
    """An image that a page draws, with its matrix from the unit square to the page."""

    handle: Any
    matrix: Matrix
    width: int
    height: int
    #: Its mark in the page, or that of the group it is in; -1 if it has none.
    mark: int = -1

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top in the page's own coordinates."""
        a, b, c, d, e, f = self.matrix
        xs, ys = (e, e + a, e + c, e + a + c), (f, f + b, f + d, f + b + d)
        return min(xs), min(ys), max(xs), max(ys)

    def content_hash(self) -> str | None:
        """Give what is the same for the same image on another page; None if it is not known."""
        size = pdfium.FPDFImageObj_GetImageDataRaw(self.handle, None, 0)
        if not 0 < size <= _MOST_HASHED:
            return None
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDFImageObj_GetImageDataRaw(self.handle, buffer, size)
        digest = hashlib.blake2b(buffer, digest_size=16).hexdigest()
        return f"{digest} {self.width} {self.height}"


def image_objects(page: Any, left_out: LeftOut) -> Iterator[ImageObject]:
    """Yield the images of a page, also those inside groups, in the order they are drawn."""
    remaining = [MAX_OBJECTS]
    count, get = pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject
    for image in _in_group(page, count, get, _IDENTITY, 0, remaining):
        if image is None:
            left_out.images["of unknown size"] += 1
        else:
            yield image
    if remaining[0] < 0:
        left_out.images["behind too many objects of a page (pages)"] += 1


def _in_group(
    group: Any,
    count: Any,
    get: Any,
    outer: Matrix,
    depth: int,
    remaining: list[int],
    mark: int = -1,
) -> Iterator[ImageObject | None]:
    for index in range(count(group)):
        remaining[0] -= 1
        if remaining[0] < 0:
            return
        handle = get(group, index)
        kind = pdfium.FPDFPageObj_GetType(handle) if handle else None
        if kind not in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM):
            continue
        if depth == 0:
            mark = pdfium.FPDFPageObj_GetMarkedContentID(handle)
        matrix = _product(_matrix(handle), outer)
        if kind == pdfium.FPDF_PAGEOBJ_FORM:
            if depth < _MAX_DEPTH:
                inner = (pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject)
                yield from _in_group(handle, *inner, matrix, depth + 1, remaining, mark)
            continue
        width, height = ctypes.c_uint(), ctypes.c_uint()
        if pdfium.FPDFImageObj_GetImagePixelSize(handle, ctypes.byref(width), ctypes.byref(height)):
            yield ImageObject(handle, matrix, width.value, height.value, mark)
        else:
            yield None


def _matrix(handle: Any) -> Matrix:
    found = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(handle, ctypes.byref(found)):
        return _IDENTITY
    return found.a, found.b, found.c, found.d, found.e, found.f


def _product(inner: Matrix, outer: Matrix) -> Matrix:
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return (
        a * p + b * r,
        a * q + b * s,
        c * p + d * r,
        c * q + d * s,
        e * p + f * r + t,
        e * q + f * s + u,
    )


def draw_image(document: Any, page: Any, image: ImageObject, quarters: int) -> bytes | None:
    """Draw an image as the page shows it, with its mask, on white; gives a JPEG or PNG file."""
    left, bottom, right, top = image.corners
    longest = max(right - left, top - bottom)
    sharp = max(image.width, image.height) / longest
    scale = min(sharp, _LONGEST_SIDE / longest)
    a, b, c, d, e, f = (value * scale for value in image.matrix)
    before = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(image.handle, ctypes.byref(before))
    drawn = pdfium.FS_MATRIX(a, b, c, d, e, f)
    pdfium.FPDFPageObj_SetMatrix(image.handle, ctypes.byref(drawn))
    try:
        bitmap = pdfium.FPDFImageObj_GetRenderedBitmap(document, page, image.handle)
    finally:
        pdfium.FPDFPageObj_SetMatrix(image.handle, ctypes.byref(before))
    if not bitmap:
        return None
    try:
        return _packed(bitmap, _is_photograph(image.handle), quarters)
    finally:
        pdfium.FPDFBitmap_Destroy(bitmap)


def _packed(bitmap: Any, photograph: bool, quarters: int) -> bytes | None:
    from PIL import Image

    width, height = pdfium.FPDFBitmap_GetWidth(bitmap), pdfium.FPDFBitmap_GetHeight(bitmap)
    stride, kind = pdfium.FPDFBitmap_GetStride(bitmap), pdfium.FPDFBitmap_GetFormat(bitmap)
    start = pdfium.FPDFBitmap_GetBuffer(bitmap)
    modes = {
        pdfium.FPDFBitmap_Gray: ("L", "L"),
        pdfium.FPDFBitmap_BGR: ("RGB", "BGR"),
        pdfium.FPDFBitmap_BGRx: ("RGB", "BGRX"),
        pdfium.FPDFBitmap_BGRA: ("RGBA", "BGRA"),
    }
    if not start or kind not in modes or not 0 < width * height <= MAX_PIXELS:
        return None
    mode, raw = modes[kind]
    data = ctypes.string_at(start, stride * height)
    picture = Image.frombuffer(mode, (width, height), data, "raw", raw, stride, 1)
    if mode == "RGBA":
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture.getchannel("A"))
        picture = white
    if quarters:
        # Text that runs upwards is read with the page turned clockwise.
        picture = picture.rotate(-90 * quarters, expand=True)
    stream = io.BytesIO()
    if photograph:
        picture.save(stream, "JPEG", quality=90)
    else:
        picture.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _is_photograph(handle: Any) -> bool:
    """Say whether the file keeps the image as JPEG or JPEG 2000."""
    name = ctypes.create_string_buffer(32)
    for index in range(pdfium.FPDFImageObj_GetImageFilterCount(handle)):
        pdfium.FPDFImageObj_GetImageFilter(handle, index, name, 32)
        if name.value in (b"DCTDecode", b"JPXDecode"):
            return True
    return False


def covers(box: Box, width: float, height: float) -> float:
    """Give the share of a page that a box covers."""
    page = Box(0.0, 0.0, width, height)
    return box.shared_width(page) * box.shared_height(page) / (width * height or 1.0)
