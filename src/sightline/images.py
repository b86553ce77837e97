"""The one door from an image file to pixels, made for files that nobody vouches for.

`decode` never raises: every failure is a `Status` with a sentence that says why, so that an image
keeps its index whatever is wrong with it. Only the seven formats of `FORMATS` are tried, the size
is read from the header before anything is decoded, and only the first frame is. `decode` itself
cannot stop a decoder that runs away; `decode_pool.DecodePool` runs it where that can be stopped.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import stat
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, get_args

import numpy as np

# The plugins are imported by name: Pillow would otherwise load all of its 45 to find these.
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,  # noqa: F401
    GifImagePlugin,
    Image,
    JpegImagePlugin,  # noqa: F401
    PngImagePlugin,  # noqa: F401
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from sightline.image_colours import Pixels, rgb_pixels
from sightline.image_headers import gif_frames, png_essentials, recognise, webp_size

Interpolation = Literal["bilinear", "bicubic", "lanczos"]

FORMATS = (
    "JPEG",
    "PNG",
    "GIF",
    "BMP",
    "TIFF",
    *(["WEBP"] if WebPImagePlugin.SUPPORTED else []),
    *(["AVIF"] if AvifImagePlugin.SUPPORTED else []),
)


class Status(StrEnum):
    """What became of an image; the words stand in every record that is written."""

    ok = "ok"
    missing = "missing"  # nothing can be read there: no file, no permission, not a regular file
    undecodable = "undecodable"  # empty, damaged, cut short, or not an image at all
    too_large = "too_large"  # over a limit on bytes, pixels, frames or memory
    unsupported = "unsupported"  # a file of another kind, such as SVG, PDF or HEIF
    timeout = "timeout"  # stopped by the time limit of a `DecodePool`


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """One image as H x W x 3 RGB pixels, or why there are none."""

    pixels: Pixels | None
    status: Status
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one image may cost; more is `too_large`, or `timeout`."""

    # Bytes of the file; no more than one over this is read.
    file_bytes: int = 100_000_000
    # Width times height as the header says them. Pillow itself refuses more than 179 million.
    pixels: int = 50_000_000
    # Frames or pages of one file, of which only the first is decoded.
    frames: int = 1_000
    # CPU time of one image, and ten times as much by the clock; `DecodePool` only. The slowest of
    # 1,508 public test images takes 0.2 s, photographs of 50 megapixels take up to 2.3 s.
    seconds: float = 5.0
    # Address space of a worker process, of which it takes 115 MB before the image; `DecodePool`
    # only. Photographs of 50 megapixels take up to 900 MB, most as WebP.
    memory_bytes: int = 1_000_000_000


DEFAULT_LIMITS = Limits()

# An image is first reduced by a whole factor, which is cheap, to no less than twice what is asked
# for, then resized. With 1 in place of 2, text and edges come out visibly different (mean error 4
# of 255 in place of 0.8); with 2, a photograph of 20 megapixels still takes a fifth of the time.
_REDUCING_GAP = 2
_Target = tuple[int, Image.Resampling]

# Without it, what Pillow logs about a bad file would be printed where nobody set up logging.
logging.getLogger("PIL").addHandler(logging.NullHandler())


class _RefusedError(Exception):
    """An image that is given up for a known reason."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.decoded = Decoded(None, status, reason)


def decode(
    source: Path | bytes,
    shorter_side: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    interpolation: Interpolation = "bicubic",
) -> Decoded:
    """Decode a file, or the bytes of one, to upright RGB pixels; a failure is a status.

    Transparency is laid on white; more than 8 bits are scaled down to 8. With `shorter_side`, an
    image that is larger comes back resized to that, as a backbone would resize it, but
    without ever being whole in memory where its format allows: several times cheaper for a
    photograph. A smaller image comes back as it is.
    """
    # Outside the net below: a wrong call is the caller's mistake, not the image's.
    target = (shorter_side, _resampling(interpolation)) if shorter_side else None
    source = source if isinstance(source, bytes) else Path(source)
    try:
        data = source if isinstance(source, bytes) else _read(source, limits.file_bytes)
        if len(data) > limits.file_bytes:
            raise _too_large(f"The file has more than {limits.file_bytes:,} bytes")
        # Only Pillow's own warnings, so that another thread's are not lost meanwhile.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="PIL")
            return Decoded(_decode_bytes(data, target, limits), Status.ok)
    except _RefusedError as refused:
        return refused.decoded
    except UnidentifiedImageError:
        reason = "The header of the image is damaged or of an unknown variant."
        return Decoded(None, Status.undecodable, reason)
    except Image.DecompressionBombError:
        return _too_large("The image has more pixels than Pillow accepts").decoded
    except MemoryError:
        return _too_large("Decoding the image takes more memory than allowed").decoded
    except Exception as error:  # a decoder's bug must not end the run, whatever it raises
        said = " ".join(str(error).split())[:200].rstrip(".")
        reason = f"The image data cannot be decoded: {said or type(error).__name__}."
        return Decoded(None, Status.undecodable, reason)


def _too_large(what: str) -> _RefusedError:
    return _RefusedError(Status.too_large, f"{what}.")


def _read(path: Path, most: int) -> bytes:
    """Read a regular file, at most one byte over the limit, without ever waiting for one."""
    # A pipe or a device would block, or never end; opening one can even have effects.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        _require_regular_file(path.stat())
        with os.fdopen(os.open(path, flags), "rb", buffering=0) as handle:
            found = os.fstat(handle.fileno())
            _require_regular_file(found)
            if found.st_size > most:
                raise _too_large(f"The file has {found.st_size:,} bytes, more than {most:,}")
            return _read_at_most(handle, most + 1)
    except OSError as error:
        absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
        reason = "no such file" if absent else (error.strerror or str(error)).lower()
        raise _RefusedError(Status.missing, f"The file cannot be read: {reason}.") from error
    except ValueError as error:  # a NUL character or half a surrogate pair in the name
        reason = f"The file cannot be read: its name is impossible ({error})."
        raise _RefusedError(Status.missing, reason) from error


def _require_regular_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, pipe or socket"
        raise _RefusedError(Status.missing, f"The file cannot be read: it is {kind}.")


def _read_at_most(handle: io.FileIO, most: int) -> bytes:
    """Read to the end or to `most` bytes: a file may grow, and some claim to be empty."""
    data = bytearray()
    while len(data) < most and (piece := handle.read(min(1 << 24, most - len(data)))):
        data += piece
    return bytes(data)


def _decode_bytes(data: bytes, target: _Target | None, limits: Limits) -> Pixels:
    kind = _require_known(data)
    try:
        return _decode_kind(kind, data, target, limits)
    except _RefusedError:
        raise
    except Exception:
        # Pillow refuses a sound PNG for text of over a megabyte, or a damaged colour profile.
        if kind != "PNG":
            raise
        return _decode_kind(kind, png_essentials(data), target, limits)


def _decode_kind(kind: str, data: bytes, target: _Target | None, limits: Limits) -> Pixels:
    with _open(kind, data, limits) as image:
        if target is None:
            image.load()
            return _upright(rgb_pixels(image), _orientation(image))
        shorter_side, resampling = target
        at_least = _REDUCING_GAP * shorter_side
        # A square, so that it does not matter whether the photograph lies on its side.
        drafted = image.draft(None, (at_least, at_least)) if kind == "JPEG" else None
        image.load()
        # What is left of the width and height need not be whole, and is kept to the fraction:
        # rounded, the picture would be shifted by up to a pixel.
        width, height = drafted[1][2:] if drafted else image.size
        factor = max(1, int(min(width, height)) // at_least)
        pixels = rgb_pixels(image, factor)
        if min(width, height) > shorter_side:
            size = _resized_size(width, height, shorter_side)
            box = (0, 0, width / factor, height / factor)
            pixels = np.array(Image.fromarray(pixels).resize(size, resampling, box=box))
        return _upright(pixels, _orientation(image))


def _open(kind: str, data: bytes, limits: Limits) -> Image.Image:
    """Open a file whose header keeps within the limits."""
    if kind == "WEBP" and (size := webp_size(data)):
        # Pillow allots two canvases as soon as it opens the file.
        _check_pixels(size, limits)
    elif kind == "GIF" and gif_frames(data, limits.frames) > limits.frames:
        raise _too_large(f"The animation has more than {limits.frames:,} frames")
    image = Image.open(io.BytesIO(data), formats=(kind,))
    _check_pixels(image.size, limits)
    _check_frames(image, limits.frames)
    return image


def _require_known(data: bytes) -> str:
    if not data:
        raise _RefusedError(Status.undecodable, "The file is empty.")
    kind = recognise(data)
    if kind is None:
        reason = "The content is not that of any known image format."
        raise _RefusedError(Status.undecodable, reason)
    if kind not in FORMATS:
        reason = f"The file is {kind}; only {', '.join(FORMATS)} can be read."
        raise _RefusedError(Status.unsupported, reason)
    return kind


def _check_pixels(size: tuple[int, int], limits: Limits) -> None:
    width, height = size
    if width * height > limits.pixels:
        raise _too_large(f"The image has {width} x {height} pixels, more than {limits.pixels:,}")
    if width < 1 or height < 1:
        raise _RefusedError(Status.undecodable, "The image has no pixels.")


def _check_frames(image: Image.Image, most: int) -> None:
    """Refuse a file of too many frames; a GIF's are counted before."""
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        # Pages are a chain, and may be broken where nobody looks: only the first is decoded.
        more = False
        with suppress(Exception):
            image.seek(most)
            more = True
        image.seek(0)
    else:
        more = not isinstance(image, GifImagePlugin.GifImageFile) and (
            getattr(image, "n_frames", 1) > most
        )
    if more:
        raise _too_large(f"The file has more than {most:,} frames")


def _orientation(image: Image.Image) -> int:
    """Read the orientation from EXIF or XMP, 1 to 8; damaged metadata does not spoil the image."""
    with suppress(Exception):
        return int(image.getexif().get(0x0112, 1))
    return 1


def _upright(pixels: Pixels, orientation: int) -> Pixels:
    """Turn the pixels as the camera was held (EXIF 2.32, tag 274)."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def _resized_size(width: float, height: float, shorter_side: int) -> tuple[int, int]:
    """Round to the nearest, as the preprocessing of the backbones does."""
    shorter = min(width, height)
    return round(width * shorter_side / shorter), round(height * shorter_side / shorter)


def _resampling(interpolation: Interpolation) -> Image.Resampling:
    if interpolation not in get_args(Interpolation):
        known = ", ".join(get_args(Interpolation))
        raise ValueError(f"interpolation is {interpolation!r}; it must be one of {known}")
    return Image.Resampling[interpolation.upper()]
