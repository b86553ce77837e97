"""From whatever an image file holds to 8-bit RGB: palettes, inks, transparency, deep pixels.

Transparency is laid on white, as paper and most pages are. Inks (CMYK) go through the colour
profile of the file where it has one, as without it print colours come out garish. Other profiles
are ignored, as the networks that see the pixels were trained without them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, TiffImagePlugin

Pixels = NDArray[np.uint8]
_Conversion = Callable[[Image.Image], Image.Image]


def rgb_pixels(image: Image.Image, factor: int = 1) -> Pixels:
    """Convert a loaded image of any mode to RGB, averaged over squares of `factor` pixels."""
    width, height = image.size
    pixels = np.empty((-(-height // factor), -(-width // factor), 3), np.uint8)
    convert = _conversion(image)
    top = 0
    for strip in _strips(image, factor):
        part = convert(strip)
        if factor > 1:
            part = part.reduce(factor)
        pixels[top : top + part.height] = np.asarray(part)
        top += part.height
    return pixels


def _strips(image: Image.Image, factor: int) -> Iterator[Image.Image]:
    """Cut an image into strips of about a megapixel, each of a multiple of `factor` rows.

    Whole copies of 50 megapixels in three modes would take more memory than decoding them.
    """
    width, height = image.size
    rows = max(1, (1 << 20) // (width * factor)) * factor
    if rows >= height:
        yield image
        return
    for top in range(0, height, rows):
        yield image.crop((0, top, width, min(top + rows, height)))


def _conversion(image: Image.Image) -> _Conversion:
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        black, white = _black_and_white(image)
        return partial(_stretched, black=black, white=white)
    if image.mode == "CMYK":
        return _by_profile(image.info.get("icc_profile")) or _plain
    return _on_white if image.has_transparency_data else _plain


def _plain(strip: Image.Image) -> Image.Image:
    return strip if strip.mode == "RGB" else strip.convert("RGB")


def _on_white(strip: Image.Image) -> Image.Image:
    if strip.mode == "La":
        strip = strip.convert("LA")  # the one step that Pillow knows from there
    strip = strip.convert("RGBA")
    paper = Image.new("RGB", strip.size, "white")
    paper.paste(strip, mask=strip.getchannel("A"))
    return paper


def _by_profile(profile: bytes | None) -> _Conversion | None:
    """Make the conversion from the inks that a profile describes; None if it describes none."""
    if not profile:
        return None
    try:
        inks = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        transform = ImageCms.buildTransform(inks, ImageCms.createProfile("sRGB"), "CMYK", "RGB")
    except (OSError, ImageCms.PyCMSError):  # damaged, or the profile of an RGB original
        return None
    return transform.apply


def _stretched(strip: Image.Image, black: float, white: float) -> Image.Image:
    values = np.asarray(strip).astype(np.float64)
    values = np.nan_to_num(values, nan=black, posinf=max(black, white), neginf=min(black, white))
    gray = np.clip((values - black) / ((white - black) or 1) * 255, 0, 255)
    return Image.fromarray((gray + 0.5).astype(np.uint8)).convert("RGB")


def _black_and_white(image: Image.Image) -> tuple[float, float]:
    """Give the values that mean black and white where a pixel is a number, not bytes."""
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}
    if image.mode.startswith("I;16"):
        bits = tags.get(TiffImagePlugin.BITSPERSAMPLE, (16,))[0]
        black, white = 0.0, float((1 << bits) - 1)
    else:
        # Nothing says what is white. The smallest usual range that holds the values is taken.
        black, white = _finite_range(image)
        usual = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
        fitting = [top for top in usual if black >= 0 and white <= top]
        if fitting:
            black, white = 0.0, fitting[0]
    inverted = tags.get(TiffImagePlugin.PHOTOMETRIC_INTERPRETATION) == 0
    return (white, black) if inverted else (black, white)


def _finite_range(image: Image.Image) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for strip in _strips(image, 1):
        values = np.asarray(strip)
        finite = values[np.isfinite(values)].astype(np.float64)
        low = min(low, float(finite.min(initial=np.inf)))
        high = max(high, float(finite.max(initial=-np.inf)))
    return (low, high) if low <= high else (0.0, 1.0)
