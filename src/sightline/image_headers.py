"""What the first bytes of an image file say, read without a decoder and without trust.

Pillow's own opening of a file already unpacks text, allots memory and follows chains; these few
functions find out beforehand whether it may, or get round it.
"""

from __future__ import annotations

import re
from contextlib import suppress

#: The formats that Sightline decodes, and the usual ending of each.
EXTENSIONS = {
    "JPEG": "jpg",
    "PNG": "png",
    "GIF": "gif",
    "BMP": "bmp",
    "TIFF": "tif",
    "WEBP": "webp",
    "AVIF": "avif",
}
#: How the names of image files end.
SUFFIXES = frozenset({".jpeg", ".tiff", *(f".{name}" for name in EXTENSIONS.values())})

# What a file begins with tells a damaged file of ours from a sound one of another kind. The first
# match counts. HEIF photographs and MP4 films share the box `ftyp` with AVIF.
_KINDS = {
    "JPEG": rb"\xff\xd8\xff",
    "PNG": rb"\x89PNG\r\n\x1a\n",
    "GIF": rb"GIF8[79]a",
    "WEBP": rb"RIFF....WEBP",
    "BMP": rb"BM",
    "TIFF": rb"II[*+]\0|MM\0[*+]",
    "AVIF": rb"....ftyp(?=.{0,40}avi[fs])",
    "HEIF or MP4": rb"....ftyp",
    "JPEG 2000": rb"\0\0\0\x0cjP|\xff\x4f\xff\x51",
    "JPEG XL": rb"\xff\x0a|\0\0\0\x0cJXL",
    "SVG or XML": rb"(\xef\xbb\xbf)?\s*<(?i:svg|\?xml)",
    "HTML": rb"(\xef\xbb\xbf)?\s*<(?i:!doctype|html|head|body)",
    "PDF": rb"%PDF",
    "PostScript": rb"%!PS|\xc5\xd0\xd3\xc6",
    "ICO or CUR": rb"\0\0[\x01\x02]\0",
    "ICNS": rb"icns",
    "Photoshop": rb"8BPS",
    "DDS, BLP or FTEX": rb"DDS |BLP[12]|FTEX|FTU\0",
    "PPM": rb"P[1-7yfF0][\s\d]",
    "XPM or XBM": rb"\s*/\* XPM|\s*#define",
    "WMF or EMF": rb"\xd7\xcd\xc6\x9a\0\0|\x01\0\0\0",
    "FITS, HDF5, GRIB or BUFR": rb"SIMPLE|\x89HDF|GRIB|BUFR",
    "OLE": rb"\xd0\xcf\x11\xe0",
    "SGI, Sun, MSP or QOI": rb"\x01\xda|\x59\xa6\x6a\x95|DanM|LinS|qoif",
    "PCX or DCX": rb"\x0a[\0\x02\x03\x05][\0\x01]|\xb1\x68\xde\x3a",
    "FLI or FLC": rb"....[\x11\x12]\xaf",
    "DIB": rb"[\x0c\x28\x40\x6c\x7c]\0\0\0",
    "IM": rb"Image type:|FileType:",
    "Gimp brush": rb".{20}GIMP",
    # A Targa file begins with no signature, only with numbers of a narrow range.
    "Targa": rb".[\0\x01][\x01-\x03\x09-\x0b].{13}[\x08\x0f\x10\x18\x20]",
    "an archive": rb"PK\x03\x04|\x1f\x8b",
}
_PATTERNS = [(kind, re.compile(pattern, re.S)) for kind, pattern in _KINDS.items()]

# What a PNG needs to be drawn and turned upright.
_PNG_CHUNKS = (b"IHDR", b"PLTE", b"tRNS", b"eXIf", b"IDAT", b"IEND")


def recognise(data: bytes) -> str | None:
    """Name the format of a file by its first bytes, or None for one of no known format."""
    return next((kind for kind, pattern in _PATTERNS if pattern.match(data, 0, 64)), None)


def png_essentials(data: bytes) -> bytes:
    """Copy a PNG without the chunks that its pixels do not need."""
    view = memoryview(data)
    parts, at, kind = [view[:8]], 8, b""
    while at + 8 <= len(data) and kind != b"IEND":
        length, kind = int.from_bytes(view[at : at + 4]), bytes(view[at + 4 : at + 8])
        end = at + 12 + length
        if kind in _PNG_CHUNKS:
            parts.append(view[at:end])
        at = end
    return b"".join(parts)


def webp_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of the canvas from a WebP header (RFC 9649, sections 2.5 to 2.7)."""
    kind, number = data[12:16], int.from_bytes
    if kind == b"VP8X":
        return number(data[24:27], "little") + 1, number(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = number(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return number(data[26:28], "little") & 0x3FFF, number(data[28:30], "little") & 0x3FFF
    return None


def gif_frames(data: bytes, most: int) -> int:
    """Count the frames of a GIF by its block lengths alone, as far as one over `most`."""

    def palette(flags: int) -> int:
        return 3 << (flags & 7) + 1 if flags & 0x80 else 0

    frames = 0
    # Where the file ends too early there are no more frames to count.
    with suppress(IndexError):
        at = 13 + palette(data[10])
        while frames <= most and data[at] in b",!":
            if data[at] == ord(","):
                frames += 1
                at += 11 + palette(data[at + 9])
            else:
                at += 2
            while size := data[at]:
                at += size + 1
            at += 1
    return frames
