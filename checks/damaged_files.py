"""Writes thousands of damaged and hostile files for `hostile_corpora.py`.

    python checks/damaged_files.py OUT [--images 4000] [--pdfs 1000] [--containers 300]
                                       [--page-sizes 0.1 1] [--from FOLDER] [--seed 1]

Images of all formats that Pillow writes, and PDF, DOCX and EPUB files, are cut, get bits flipped,
bytes lost, doubled and moved, and numbers in their headers that lie. Half of the PNG files get
right checksums again, so that the damage is met behind them. `--from` takes images, PDFs, DOCX and
EPUB files found there as sound files too. `pages` are the inputs that Markdown and HTML parsers are
known to be slow on, among them those of cmark's `pathological_tests.py` at its sizes and a tenth
(`slow_pages.py`). The same seed gives the same files, but for the times that some formats note.
"""

import argparse
import io
import random
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from made_files import PdfFile, epub, picture
from slow_pages import slow_pages

LIES = [0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
SUFFIXES = (".png", ".jpg", ".gif", ".webp", ".tif", ".tiff", ".bmp", ".avif", ".jp2", ".ico")


def sound_images() -> Iterator[tuple[str, bytes]]:
    """Yield small images of every format and mode that can be written here, with a suffix."""
    rng = np.random.default_rng(0)
    rgb = Image.fromarray(rng.integers(0, 256, (24, 32, 3), np.uint8))
    frames = [rgb.rotate(90 * turn) for turn in range(3)]
    several = {"save_all": True, "append_images": frames}
    ways = [
        *(("png", "PNG", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
        ("png", "PNG", "RGB", several),
        *(("jpg", "JPEG", mode, {}) for mode in ("L", "RGB", "CMYK")),
        ("jpg", "JPEG", "RGB", {"progressive": True, "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}),
        ("gif", "GIF", "P", {}), ("gif", "GIF", "P", several),
        ("gif", "GIF", "L", {"interlace": 1}),
        ("webp", "WEBP", "RGB", {}), ("webp", "WEBP", "RGBA", {"lossless": True}),
        ("webp", "WEBP", "RGB", several),
        *(("tif", "TIFF", "RGB", {"compression": way}) for way in
          ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "webp", "zstd")),
        ("tif", "TIFF", "1", {"compression": "group4"}), ("tif", "TIFF", "RGB", several),
        ("tif", "TIFF", "RGB", {"big_tiff": True}),
        *(("bmp", "BMP", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")),
        ("avif", "AVIF", "RGB", {}), ("avif", "AVIF", "RGB", several),
        ("ico", "ICO", "RGBA", {}), ("ppm", "PPM", "RGB", {}), ("pbm", "PPM", "1", {}),
        ("tga", "TGA", "RGB", {"compression": "tga_rle"}), ("jp2", "JPEG2000", "RGB", {}),
        ("pcx", "PCX", "RGB", {}), ("sgi", "SGI", "RGB", {}), ("dds", "DDS", "RGBA", {}),
        ("icns", "ICNS", "RGBA", {}), ("im", "IM", "RGB", {}), ("xbm", "XBM", "1", {}),
    ]  # fmt: skip
    for suffix, kind, mode, options in ways:
        stream = io.BytesIO()
        try:
            rgb.convert(mode).save(stream, kind, **options)
        except (OSError, ValueError, KeyError):  # a library that this Pillow is built without
            continue
        yield suffix, stream.getvalue()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Damage a file in one of the ways in which files are damaged."""
    way = rng.randrange(8)
    head = rng.random() < 0.6  # the first bytes say what the others mean
    at = rng.randrange(min(len(data), 128) if head else len(data))
    if way == 0:
        return data[: rng.randrange(len(data))]
    if way == 1:
        out = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            place = rng.randrange(min(len(data), 256) if head else len(data))
            out[place] ^= 1 << rng.randrange(8)
        return bytes(out)
    if way in (2, 3):
        lie = rng.choice(LIES)
        form = rng.choice(("<I", ">I")) if lie > 0xFFFF else rng.choice(("<I", ">I", "<H", ">H"))
        piece = struct.pack(form, lie)
        return data[:at] + piece + data[at + len(piece) :]
    if way == 4:
        return data[:at] + data[at + rng.randrange(1, 64) :]
    if way == 5:
        return data[:at] + rng.randbytes(rng.randrange(1, 64)) + data[at:]
    if way == 6:
        end = rng.randrange(at, len(data) + 1)
        return data[:end] + data[at:end] * rng.randrange(1, 20) + data[end:]
    other = rng.randrange(len(data))
    return data[:at] + data[other:] + data[at:]


def with_checksums(data: bytes) -> bytes:
    """Give each chunk of a PNG the checksum of what is in it now."""
    out, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4])
        body = data[at + 4 : at + 8 + length]
        out += data[at : at + 4] + body + zlib.crc32(body).to_bytes(4)
        at += 12 + length
    return bytes(out + data[at:])


def sound_pdfs() -> Iterator[tuple[str, bytes]]:
    """Yield PDFs of a few pages."""
    for number in range(3):
        file = PdfFile()
        image = file.image(number)
        for page in range(number + 1):
            texts = [(50, 700 - 20 * i, 10, f"Line {i} of page {page}.") for i in range(9)]
            file.page(texts, [(image, 50, 300, 90, 60)])
        yield "pdf", _written(file.write)


def _written(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "file")
        return (Path(folder) / "file").read_bytes()


def damaged_container(data: bytes, rng: random.Random) -> bytes:
    """Damage a ZIP file: itself, or one of the files in it, packed anew."""
    if rng.random() < 0.3:
        return damaged(data, rng)
    stream = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            files = {name: old.read(name) for name in old.namelist()}
    # What zipfile raises for archives that are damaged already.
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, OSError):
        return damaged(data, rng)
    with zipfile.ZipFile(stream, "w") as new:
        chosen = rng.choice(list(files) or [""])
        for name, content in files.items():
            if name != chosen:
                new.writestr(name, content)
            elif rng.random() < 0.9:
                for _ in range(rng.choice((1, 1, 3))):
                    content = damaged(content or b"x", rng)
                new.writestr(name, content)
    return stream.getvalue()


def sound_containers() -> Iterator[tuple[str, bytes]]:
    """Yield a book and a Word document."""
    import docx

    chapters = {"a.xhtml": "<h1>A</h1><p>Text.</p><img src='a.png'/>", "b.xhtml": "<p>More.</p>"}
    yield "epub", _written(lambda path: epub(path, chapters, {"OEBPS/a.png": picture()}))
    document, stream = docx.Document(), io.BytesIO()
    document.add_heading("A")
    document.add_paragraph("Text.")
    document.add_picture(io.BytesIO(picture()))
    document.add_table(2, 2).cell(0, 0).text = "Cell."
    document.save(stream)
    yield "docx", stream.getvalue()


def found(folders: list[Path], suffixes: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """The sound files that the user has, up to 200 kB each."""
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    chosen = [path for path in files if path.suffix.lower() in suffixes]
    small = [path for path in chosen if 0 < path.stat().st_size < 200_000]
    return [(path.suffix.lower()[1:], path.read_bytes()) for path in small]


def write(folder: Path, sound: list[tuple[str, bytes]], count: int, damage, rng) -> None:
    """Write so many damaged files, of each sound one about as many."""
    folder.mkdir(parents=True)
    for number in range(count):
        suffix, data = sound[number % len(sound)]
        broken = damage(data, rng)
        for _ in range(rng.choice((0, 0, 1, 3))):
            broken = damage(broken, rng) if broken else broken
        if suffix == "png" and number % 2:
            broken = with_checksums(broken)
        (folder / f"{number:05d}.{suffix}").write_bytes(broken)


def main() -> int:
    """Write all kinds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--pdfs", type=int, default=1000)
    parser.add_argument("--containers", type=int, default=300)
    parser.add_argument("--page-sizes", type=float, nargs="*", default=[0.1, 1])
    parser.add_argument("--from", dest="folders", type=Path, nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    images = [*sound_images(), *found(given.folders, SUFFIXES)]
    write(given.out / "images", images, given.images, damaged, rng)
    pdfs = [*sound_pdfs(), *found(given.folders, (".pdf",))]
    write(given.out / "pdfs", pdfs, given.pdfs, damaged, rng)
    containers = [*sound_containers(), *found(given.folders, (".docx", ".epub"))]
    write(given.out / "containers", containers, given.containers, damaged_container, rng)
    (given.out / "pages").mkdir()
    for name, content in slow_pages(given.page_sizes):
        (given.out / "pages" / name).write_text(content, encoding="utf-8")
    pages = len(list((given.out / "pages").iterdir()))
    print(
        f"{given.images} images of {len(images)} sound ones, {given.pdfs} PDFs of {len(pdfs)}, "
        f"{given.containers} containers of {len(containers)}, {pages} pages in {given.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
