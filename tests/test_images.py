"""Decoding: every format and mode to the same pixels, every bad file to a status."""

import errno
import io
import os
import random
import struct
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, TiffImagePlugin, features

from sightline import images
from sightline.backbones import Preprocessing
from sightline.image_colours import rgb_pixels
from sightline.images import FORMATS, Limits, Status, decode

needs_avif = pytest.mark.skipif(not features.check("avif"), reason="Pillow was built without AVIF")
WIDTH, HEIGHT = 60, 40
LITE = Preprocessing(256, 224, "bicubic", (127, 127, 127), (128, 128, 128))


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    """Give a smooth picture in which no two corners are alike."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    bands = [x * 255 / WIDTH, y * 255 / HEIGHT, 128 + 100 * np.sin(x / 9) * np.cos(y / 7)]
    return Image.fromarray(np.stack(bands, axis=2).astype(np.uint8))


def saved(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def ok(source, *arguments, **options):
    decoded = decode(source, *arguments, **options)
    assert decoded.status is Status.ok, decoded.reason
    assert decoded.reason is None
    assert decoded.pixels.dtype == np.uint8
    assert decoded.pixels.shape[2] == 3
    assert decoded.pixels.flags.c_contiguous
    assert decoded.pixels.flags.writeable
    return decoded.pixels.astype(int)


def failed(source, status, *arguments, **options):
    decoded = decode(source, *arguments, **options)
    assert decoded.status is status, decoded.reason
    assert decoded.pixels is None
    assert decoded.reason.endswith(".")
    assert decoded.reason[0].isupper()
    return decoded.reason


def error(a, b):
    return np.abs(np.asarray(a, int) - np.asarray(b, int)).mean()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, *extra):
    """Write a PNG by hand: Pillow cannot write most depths."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = [chunk(b"IHDR", header), *extra, chunk(b"IDAT", data), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


# Formats and modes


LOSSLESS = {
    "PNG": {},
    "BMP": {},
    "TIFF": {},
    "TIFF lzw": {"compression": "tiff_lzw"},
    "TIFF deflate": {"compression": "tiff_adobe_deflate"},
    "TIFF packbits": {"compression": "packbits"},
    "WEBP": {"lossless": True, "exact": True},
}


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_formats_give_the_very_pixels(photo, name):
    data = saved(photo, name.split()[0], **LOSSLESS[name])
    assert np.array_equal(ok(data), np.asarray(photo))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {"quality": 95}),
        ("JPEG", {"quality": 95, "progressive": True}),
        ("WEBP", {"quality": 95}),
        ("TIFF", {"compression": "jpeg", "quality": 95}),
        pytest.param("AVIF", {"quality": 90}, marks=needs_avif),
    ],
)
def test_lossy_formats_give_nearly_the_pixels(photo, kind, options):
    assert error(ok(saved(photo, kind, **options)), photo) < 3


def test_a_path_and_its_bytes_are_the_same(photo, tmp_path):
    path = tmp_path / "no extension, ünd spaces"
    path.write_bytes(saved(photo, "PNG"))
    link = tmp_path / "link.gif"
    link.symlink_to(path)
    assert np.array_equal(ok(path), np.asarray(photo))
    assert np.array_equal(ok(link), np.asarray(photo))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_gray_and_black_and_white(photo, kind):
    for mode in ("L", "1"):
        image = photo.convert(mode)
        assert np.array_equal(ok(saved(image, kind)), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF"])
def test_palette(photo, kind):
    image = photo.quantize(32)
    assert np.array_equal(ok(saved(image, kind)), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_a_transparent_palette_colour_is_white(photo, kind):
    image = photo.quantize(32)
    chosen = np.asarray(image) == image.getpixel((5, 5))
    pixels = ok(saved(image, kind, transparency=image.getpixel((5, 5))))
    assert (pixels[chosen] == 255).all()
    assert np.array_equal(pixels[~chosen], np.asarray(image.convert("RGB"))[~chosen])


def test_a_palette_half_transparent():
    colours = chunk(b"PLTE", bytes([0, 0, 0, 200, 100, 0]))
    alphas = chunk(b"tRNS", bytes([128, 0]))
    pixels = ok(png(2, 1, 8, 3, [b"\0\1"], colours, alphas))
    assert pixels.tolist() == [[[127] * 3, [255] * 3]]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_few_bits_of_gray_and_of_palette(depth):
    most = (1 << depth) - 1
    row = bytes([most << (8 - depth)]) + bytes(depth - 1)  # white first, then black, 8 pixels
    expected = [[255] * 3] + [[0] * 3] * 7
    assert ok(png(8, 1, depth, 0, [row])).tolist() == [expected]
    colours = chunk(b"PLTE", bytes([0, 0, 0] + [255, 255, 255] * most))
    assert ok(png(8, 1, depth, 3, [row], colours)).tolist() == [expected]


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", pytest.param("AVIF", marks=needs_avif)])
def test_alpha_is_laid_on_white(photo, kind):
    image = photo.copy()
    image.putalpha(Image.linear_gradient("L").resize(photo.size))
    alpha = np.asarray(image)[..., 3:] / 255
    expected = np.asarray(photo) * alpha + 255 * (1 - alpha)
    options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    assert error(ok(saved(image, kind, **options)), expected) < (3 if kind == "AVIF" else 1)
    if kind in ("PNG", "TIFF"):
        gray = image.convert("LA")
        expected = np.asarray(photo.convert("L"))[..., None] * alpha + 255 * (1 - alpha)
        assert error(ok(saved(gray, kind)), expected.repeat(3, axis=2)) < 1


def test_premultiplied_alpha_in_tiff():
    if ("La", "La") not in TiffImagePlugin.OPEN_INFO.values():
        pytest.skip("this Pillow does not know it")
    # Associated alpha (ExtraSamples 1), which Pillow does not write by itself.
    gray = Image.new("LA", (2, 1))
    gray.putdata([(100, 128), (0, 0)])
    data = saved(gray, "TIFF")
    at = data.index(struct.pack("<HHI", 338, 3, 1))
    data = data[: at + 8] + b"\1" + data[at + 9 :]
    assert np.allclose(ok(data), [[[227] * 3, [255] * 3]], atol=1)


def test_one_transparent_colour_of_gray_and_rgb():
    gray = png(2, 1, 8, 0, [bytes([9, 200])], chunk(b"tRNS", b"\0\x09"))
    assert ok(gray).tolist() == [[[255] * 3, [200] * 3]]
    row = bytes([1, 2, 3, 7, 8, 9])
    colour = png(2, 1, 8, 2, [row], chunk(b"tRNS", b"\0\1\0\2\0\3"))
    assert ok(colour).tolist() == [[[255] * 3, [7, 8, 9]]]


RAMP_16 = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
RAMP_8 = np.arange(256).reshape(16, 16)[..., None].repeat(3, axis=2)


def test_sixteen_bits_are_scaled_not_clipped():
    assert error(ok(saved(Image.fromarray(RAMP_16), "PNG")), RAMP_8) < 0.6
    assert error(ok(saved(Image.fromarray(RAMP_16), "TIFF")), RAMP_8) < 0.6
    assert error(ok(saved(Image.fromarray(RAMP_16), "TIFF", compression="tiff_lzw")), RAMP_8) < 0.6
    rows = [np.repeat(row, 3).astype(">u2").tobytes() for row in RAMP_16]
    assert error(ok(png(16, 16, 16, 2, rows)), RAMP_8) < 1
    with_alpha = np.stack([RAMP_16, np.full_like(RAMP_16, 65535)], axis=2)
    rows = [row.astype(">u2").tobytes() for row in with_alpha]
    assert error(ok(png(16, 16, 16, 4, rows)), RAMP_8) < 1


def tiff(values, **tags):
    """Write an uncompressed gray TIFF of any sample type and byte order by hand."""
    order = ">" if values.dtype.byteorder == ">" else "<"
    entries = {
        256: values.shape[1], 257: values.shape[0], 258: values.itemsize * 8, 259: 1, 262: 1,
        273: 8, 277: 1, 278: values.shape[0], 279: values.nbytes,
        339: {"u": 1, "i": 2, "f": 3}[values.dtype.kind],
    } | {int(key[1:]): value for key, value in tags.items()}  # fmt: skip
    body = values.tobytes()
    directory = struct.pack(order + "H", len(entries)) + b"".join(
        struct.pack(order + "HHII", tag, 4, 1, value) for tag, value in sorted(entries.items())
    )
    start = b"MM\0*" if order == ">" else b"II*\0"
    return start + struct.pack(order + "I", 8 + len(body)) + body + directory + bytes(4)


def test_tiff_samples_of_every_type():
    assert error(ok(tiff(RAMP_16.astype(">u2"))), RAMP_8) < 0.6
    assert error(ok(tiff(RAMP_16, t262=0)), 255 - RAMP_8) < 0.6  # white is zero
    unit = np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16)
    assert error(ok(tiff(unit)), RAMP_8) < 0.6
    assert error(ok(tiff(unit.astype(">f4"))), RAMP_8) < 0.6
    assert error(ok(tiff(unit * 255)), RAMP_8) < 0.6
    assert error(ok(tiff(unit * 2e30 - 1e30)), RAMP_8) < 0.6
    assert error(ok(tiff(unit, t262=0)), 255 - RAMP_8) < 0.6
    assert error(ok(tiff(RAMP_16.astype(np.int32))), RAMP_8) < 0.6
    assert error(ok(tiff(RAMP_16.astype(np.int32) * 30000 - 10**9)), RAMP_8) < 0.6
    assert error(ok(tiff(RAMP_8[..., 0].astype(np.int32))), RAMP_8) < 0.6


def test_floats_that_are_not_numbers():
    values = np.array([[np.nan, np.inf, -np.inf, 255, 100, 0]], np.float32)
    assert ok(tiff(values))[0, :, 0].tolist() == [0, 255, 0, 255, 100, 0]
    assert (ok(tiff(np.full((3, 3), np.nan, np.float32))) == 0).all()
    assert (ok(tiff(np.full((3, 3), 7e8, np.float32))) == 0).all()


def cmyk_jpeg(photo, **options):
    return saved(photo.convert("CMYK"), "JPEG", quality=95, subsampling=0, **options)


def test_cmyk(photo):
    assert error(ok(cmyk_jpeg(photo)), photo) < 2  # Adobe's, inverted
    assert error(ok(saved(photo.convert("CMYK"), "TIFF")), photo) < 1


def test_ycck(photo):
    negative = Image.eval(photo, lambda value: 255 - value).convert("YCbCr")
    bands = [Image.eval(band, lambda value: 255 - value) for band in negative.split()]
    image = Image.merge("CMYK", [*bands, Image.new("L", photo.size)])
    data = bytearray(saved(image, "JPEG", quality=95, subsampling=0))
    data[data.index(b"Adobe") + 11] = 2  # what was stored are Y, Cb, Cr and K
    assert error(ok(bytes(data)), photo) < 2


def black_ink_profile():
    """Write an ICC profile by which only black ink is seen, as no program would assume."""
    corners = [(0 if corner & 1 else 255, 128, 128) for corner in range(16)]
    identity = bytes(range(256))
    lut = b"mft1" + bytes(4) + bytes([4, 3, 2, 0])
    lut += b"".join(struct.pack(">i", 65536 * (i % 4 == 0)) for i in range(9))
    lut += identity * 4 + bytes(value for corner in corners for value in corner) + identity * 3
    header = struct.pack(">I4sI4s4s4s", 0, b"", 0x02400000, b"prtr", b"CMYK", b"Lab ")
    header += bytes(12) + b"acsp" + bytes(28) + struct.pack(">III", 0xF6D6, 0x10000, 0xD32D)
    header = header.ljust(128, b"\0")
    profile = header + struct.pack(">I4sII", 1, b"A2B0", 144, len(lut)) + lut
    return struct.pack(">I", len(profile)) + profile[4:]


def test_inks_go_through_their_profile(photo):
    cyan = Image.new("CMYK", (8, 8), (255, 0, 0, 0))
    assert error(ok(saved(cyan, "JPEG")), np.full((8, 8, 3), (0, 255, 255))) < 2
    assert error(ok(saved(cyan, "JPEG", icc_profile=black_ink_profile())), 255) < 2
    for useless in (
        b"nonsense",
        ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    ):
        assert error(ok(cmyk_jpeg(photo, icc_profile=useless)), photo) < 2


@pytest.mark.parametrize(
    "kind", ["GIF", "WEBP", "TIFF", "PNG", pytest.param("AVIF", marks=needs_avif)]
)
def test_the_first_frame_is_taken(photo, kind):
    frames = [Image.new("RGB", photo.size, colour) for colour in ("blue", "red")]
    data = saved(photo, kind, save_all=True, append_images=frames)
    assert error(ok(data), photo) < (12 if kind == "GIF" else 4)


def test_pages_may_be_of_different_kinds(photo):
    """The first page is read by its own tags, although the others are counted."""
    ramp = Image.fromarray(RAMP_16)
    data = saved(ramp, "TIFF", save_all=True, append_images=[photo.convert("1"), photo])
    assert error(ok(data), RAMP_8) < 0.6


def test_frames_are_limited():
    kinds = ["GIF", "WEBP", "TIFF"] + (["AVIF"] if "AVIF" in FORMATS else [])
    for kind in kinds:
        frames = [Image.new("RGB", (8, 8), (60 * i, 0, 0)) for i in range(5)]
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:])
        ok(data, limits=Limits(frames=5))
        assert "frames" in failed(data, Status.too_large, limits=Limits(frames=4))


# Orientation and size

TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,  # the camera's turn, which the decoder takes back
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.mark.parametrize(
    "kind", ["JPEG", "PNG", "WEBP", "TIFF", pytest.param("AVIF", marks=needs_avif)]
)
def test_all_eight_orientations(photo, kind):
    quality = {"lossless": True} if kind == "WEBP" else {} if kind == "PNG" else {"quality": 95}
    for orientation in range(1, 9):
        stored = photo.transpose(TURNS[orientation]) if orientation > 1 else photo
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = saved(stored, kind, exif=exif, **quality)
        assert error(ok(data), photo) < 3, orientation
        small = ok(data, 20)
        assert small.shape == (20, 30, 3)
        assert error(small, photo.resize((30, 20), Image.Resampling.BICUBIC)) < 4, orientation


def test_damaged_metadata_does_not_spoil_the_image(photo):
    for exif in (b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"):
        assert error(ok(saved(photo, "JPEG", quality=95, exif=exif)), photo) < 3
    exif = Image.Exif()
    exif[0x0112] = 77
    assert error(ok(saved(photo, "JPEG", quality=95, exif=exif)), photo) < 3


def detailed(width, height):
    """Give a picture with edges and fine texture, in which a shift would show."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / 40) * np.cos(y / 30), np.sign(np.sin(x / 70 + y / 50)), np.sin(y / 9)]
    return Image.fromarray((np.stack(waves, axis=2) * 100 + 128).astype(np.uint8))


@pytest.mark.parametrize("size", [(1600, 1200), (1301, 1111), (523, 900), (300, 257)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_reduced_decode_equals_a_whole_one_resized(size, kind):
    data = saved(detailed(*size), kind)
    whole = ok(data).astype(np.uint8)
    shorter = min(size)
    expected = Image.fromarray(whole).resize(
        (round(256 * size[0] / shorter), round(256 * size[1] / shorter)), Image.Resampling.BICUBIC
    )
    reduced = ok(data, 256)
    assert error(reduced, expected) < 1
    square = LITE.resize(whole)
    assert error(LITE.resize(reduced.astype(np.uint8)), square) < 1


def test_a_reduced_decode_uses_the_interpolation(photo):
    data = saved(photo, "PNG")
    for name in ("bilinear", "bicubic", "lanczos"):
        filter_ = Image.Resampling[name.upper()]
        assert np.array_equal(ok(data, 20, interpolation=name), photo.resize((30, 20), filter_))


def test_an_unknown_interpolation_is_the_callers_mistake(photo):
    with pytest.raises(ValueError, match="'cubic'; it must be one of bilinear, bicubic, lanczos"):
        decode(saved(photo, "PNG"), 20, interpolation="cubic")


def test_a_smaller_image_comes_back_as_it_is(photo):
    assert np.array_equal(ok(saved(photo, "PNG"), 256), np.asarray(photo))
    assert np.array_equal(ok(saved(photo, "PNG"), HEIGHT), np.asarray(photo))


def test_large_images_are_converted_in_strips():
    """Several strips must join without a seam, in every kind of conversion."""
    image = detailed(1100, 2100)
    for mode in ("RGB", "P", "RGBA", "CMYK"):
        converted = image.convert(mode)
        expected = np.asarray(converted.convert("RGB"))
        assert np.array_equal(ok(saved(converted, "TIFF")), expected), mode
    for factor in (2, 3, 7):
        expected = np.asarray(image.reduce(factor))
        assert np.array_equal(rgb_pixels(image, factor), expected), factor
    deep = np.asarray(image)[..., 0].astype(np.uint16) * 257
    assert np.array_equal(
        ok(saved(Image.fromarray(deep), "TIFF"))[..., 0], np.asarray(image)[..., 0]
    )


# What is not an image, or not one of ours


OTHERS = [
    "PPM",
    "ICO",
    "ICNS",
    "JPEG2000",
    "TGA",
    "PCX",
    "SGI",
    "DDS",
    "IM",
    "EPS",
    "PDF",
    "DIB",
    "QOI",
]


@pytest.mark.filterwarnings("ignore:IM image format is deprecated")
@pytest.mark.parametrize("kind", OTHERS)
def test_other_formats_that_pillow_knows_are_unsupported(photo, kind):
    Image.init()
    try:
        data = saved(photo.resize((64, 64)), kind)
    except (OSError, KeyError):
        pytest.skip(f"Pillow cannot write {kind} here")
    assert "can be read" in failed(data, Status.unsupported)


@pytest.mark.parametrize(
    "data",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        b'\xef\xbb\xbf\n <?xml version="1.0"?><svg/>',
        b"<!DOCTYPE html><title>404</title>",
        b"<HTML>",
        b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        b"\0\0\0\x18ftypisom\0\0\0\0mp41",
        b"PK\3\4 an EPUB",
    ],
)
def test_other_kinds_of_files_are_unsupported(data):
    failed(data, Status.unsupported)


@pytest.mark.parametrize("data", [b"", b"\xff", b"not an image", bytes(1000), b"RIFF____WAVE"])
def test_what_is_no_image_is_undecodable(data):
    failed(data, Status.undecodable)


def test_what_cannot_be_read_is_missing(tmp_path, monkeypatch):
    pipe, loop, broken = tmp_path / "pipe", tmp_path / "loop", tmp_path / "broken"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    broken.symlink_to(tmp_path / "nothing")
    paths = [
        tmp_path, tmp_path / "nothing.jpg", tmp_path / "x" / "y.jpg", pipe, loop, broken,
        Path("/dev/zero"), Path("/dev/null"), Path("\0"), Path("a" * 5000), Path("\ud800"), Path(),
    ]  # fmt: skip
    start = time.monotonic()
    for path in paths:
        assert "cannot be read" in failed(path, Status.missing), path
    assert time.monotonic() - start < 2
    writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    os.write(writer, b"\xff\xd8\xff")
    failed(pipe, Status.missing)
    assert os.read(writer, 10) == b"\xff\xd8\xff"
    os.close(writer)

    def denied(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    file = tmp_path / "file"
    file.write_bytes(b"x")
    monkeypatch.setattr(images.os, "open", denied)
    assert "permission denied" in failed(file, Status.missing)
    assert "device" in failed(pipe, Status.missing)  # a pipe or device is not even opened


def test_a_file_that_says_it_is_empty_is_read(tmp_path):
    """Files under /proc have the size 0, and some never end."""
    failed(Path("/proc/self/status"), Status.undecodable)


def test_file_size_is_limited_before_reading(photo, tmp_path):
    data = saved(photo, "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(data)
    for source in (data, path):
        ok(source, limits=Limits(file_bytes=len(data)))
        assert "bytes" in failed(source, Status.too_large, limits=Limits(file_bytes=len(data) - 1))
    with path.open("r+b") as handle:  # a sparse file of a terabyte
        handle.truncate(10**12)
    failed(path, Status.too_large)


# Bombs


def webp_vp8x(width, height):
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", bytes(4) + canvas)


def webp(kind, data):
    body = b"WEBP" + kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def jpeg_of(width, height, photo):
    data = bytearray(saved(photo, "JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def avif_of(width, height, photo):
    data = bytearray(saved(photo, "AVIF"))
    at = data.index(b"ispe") + 8
    data[at : at + 8] = struct.pack(">II", width, height)
    return bytes(data)


GIF_FRAME = b",\0\0\0\0\1\0\1\0\0\2\2D\1\0;"


def test_too_many_pixels_are_refused_by_the_header(photo):
    cases = {
        "png": png(30_000, 30_000, 8, 2, [b""]),
        "png just over": png(50_000_001, 1, 8, 0, [b""]),
        "gif screen": b"GIF89a" + struct.pack("<HH", 65535, 65535) + bytes(3) + GIF_FRAME,
        "gif frame": b"GIF89a\1\0\1\0\0\0\0,"
        + struct.pack("<HHHH", 9000, 9000, 9, 9)
        + GIF_FRAME[9:],
        "tiff": tiff(np.zeros((2, 2), np.uint8), t256=60_000, t257=60_000),
        "webp": webp_vp8x(10_000, 10_000),
        "webp beyond Pillow": webp_vp8x(1 << 24, 200),
        "webp lossless": webp(b"VP8L", b"\x2f" + struct.pack("<I", 9_999 | 9_999 << 14)),
        "webp lossy": webp(b"VP8 ", b"\0\0\0\x9d\1\x2a" + struct.pack("<HH", 10_000, 10_000)),
        "bmp": b"BM"
        + bytes(12)
        + struct.pack("<IiiHHIIiiII", 40, 9000, 9000, 1, 24, 0, 0, 0, 0, 0, 0),
        "jpeg": jpeg_of(65_000, 65_000, photo),
    }
    start = time.process_time()
    for name, data in cases.items():
        assert "pixels" in failed(data, Status.too_large), name
        assert failed(data, Status.too_large, 256), name
    assert time.process_time() - start < 1
    exactly = saved(Image.new("1", (100, 100)), "PNG")
    ok(exactly, limits=Limits(pixels=10_000))
    failed(exactly, Status.too_large, limits=Limits(pixels=9_999))


@needs_avif
def test_an_avif_that_lies_about_its_size(photo):
    failed(avif_of(20_000, 20_000, photo), Status.undecodable)  # libavif's own limit is 16,384
    failed(avif_of(9_000, 9_000, photo), Status.too_large)


def test_headers_that_promise_more_than_there_is():
    failed(tiff(np.zeros((2, 2), np.uint8), t257=5000, t278=5000, t279=10_000), Status.undecodable)
    failed(tiff(np.zeros((2, 2), np.uint8), t273=10**9), Status.undecodable)
    failed(png(0, 5, 8, 0, [b""]), Status.undecodable)
    failed(webp_vp8x(50, 50), Status.undecodable)
    failed(b"GIF89a\0\0\0\0\0\0\0" + b",\0\0\0\0\0\0\0\0\0\2\0;", Status.undecodable)


def test_bombs_in_png_metadata_are_never_unpacked():
    bomb = zlib.compress(bytes(30_000_000), 9)
    bombs = [
        chunk(b"iTXt", b"k\0\1\0\0\0" + bomb),
        chunk(b"zTXt", b"k\0\0" + bomb),
        chunk(b"iCCP", b"k\0\0" + bomb),
        chunk(b"tEXt", b"k\0" + bytes(2_000_000)),
    ]
    for extra in bombs:
        data = png(2, 1, 8, 0, [b"\x07\x63"], extra)
        assert ok(data).tolist() == [[[7] * 3, [99] * 3]]
        late = data[:-12] + extra + data[-12:]
        assert ok(late).tolist() == [[[7] * 3, [99] * 3]]
    exif = Image.Exif()
    exif[0x0112] = 3
    data = png(2, 1, 8, 0, [b"\x07\x63"], bombs[0], chunk(b"eXIf", exif.tobytes()[6:]))
    assert ok(data).tolist() == [[[99] * 3, [7] * 3]]


def test_a_damaged_profile_or_text_does_not_spoil_a_png():
    for extra in (
        chunk(b"iCCP", b"k\0\x63zz"),
        chunk(b"cHRM", b""),
        chunk(b"zTXt", b"k\0\0nonsense"),
    ):
        assert ok(png(1, 1, 8, 0, [b"\x07"], extra)).tolist() == [[[7] * 3]]


# Damage


@pytest.fixture(scope="module")
def examples(photo):
    """One file of each format, and of the decoders that differ within one."""
    found = {
        "JPEG": saved(photo, "JPEG"),
        "JPEG progressive": saved(photo, "JPEG", progressive=True),
        "JPEG cmyk": cmyk_jpeg(photo, exif=Image.Exif().tobytes()),
        "PNG": saved(photo, "PNG"),
        "PNG palette": saved(photo.quantize(16), "PNG", transparency=3),
        "GIF": saved(photo, "GIF", save_all=True, append_images=[photo.rotate(90)]),
        "BMP": saved(photo, "BMP"),
        "TIFF": saved(photo, "TIFF"),
        "TIFF lzw": saved(photo, "TIFF", compression="tiff_lzw"),
        "TIFF jpeg": saved(photo, "TIFF", compression="jpeg"),
        "WEBP": saved(photo, "WEBP"),
        "WEBP lossless": saved(photo.convert("RGBA"), "WEBP", lossless=True),
    }
    if "AVIF" in FORMATS:
        found["AVIF"] = saved(photo, "AVIF")
    return found


def checked(data, *arguments):
    """Decode, and require a whole answer whatever the data."""
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        decoded = decode(data, *arguments)
    assert not leaked
    assert (
        (decoded.pixels is None)
        == (decoded.status is not Status.ok)
        == (decoded.reason is not None)
    )
    return decoded


def test_a_file_cut_short_is_undecodable_or_whole(examples):
    undecodable = cases = 0
    for name, data in examples.items():
        whole = decode(data).pixels
        for cut in sorted({len(data) * part // 30 for part in range(30)} | {len(data) - 1}):
            decoded = checked(data[:cut])
            assert decoded.status in (Status.undecodable, Status.ok), name
            undecodable += decoded.status is Status.undecodable
            # Where only a trailer is lost, all pixels are still there.
            assert decoded.pixels is None or np.array_equal(decoded.pixels, whole), (name, cut)
            cases += 1
    assert cases > 350
    assert undecodable > 0.85 * cases


def test_random_damage_gives_a_status(examples):
    chance = random.Random(3)
    seen = set()
    for data in examples.values():
        for _ in range(40):
            damaged = bytearray(data)
            for _ in range(chance.choice([1, 2, 10, 50])):
                # Headers are short, and the most interesting.
                end = chance.choice([40, 200, len(data)])
                damaged[chance.randrange(min(end, len(data)))] = chance.randrange(256)
            seen.add(checked(bytes(damaged), chance.choice([None, 16])).status)
    assert {Status.ok, Status.undecodable, Status.too_large} <= seen


def test_random_tails_give_a_status(examples):
    chance = random.Random(4)
    for data in examples.values():
        for length in (2, 12, 30, 100):
            assert checked(data[:length] + chance.randbytes(2000)).status is not Status.timeout


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (MemoryError(), Status.too_large),
        (Image.DecompressionBombError("big"), Status.too_large),
        (RecursionError("deep"), Status.undecodable),
        (struct.error("short"), Status.undecodable),
        (OverflowError("long"), Status.undecodable),
        (SyntaxError("odd"), Status.undecodable),
        (KeyError(None), Status.undecodable),
        (ValueError("\n"), Status.undecodable),
        (ZeroDivisionError(), Status.undecodable),
    ],
)
def test_whatever_a_decoder_raises_is_a_status(photo, monkeypatch, raised, status):
    def broken(*arguments, **options):
        raise raised

    monkeypatch.setattr(Image, "open", broken)
    failed(saved(photo, "PNG"), status)


def test_ctrl_c_is_not_swallowed(photo, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Image, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decode(saved(photo, "PNG"))


def test_shared_photographs_all_decode(shared_data):
    seen = 0
    for folder in ("coco", "guides", "openstax"):
        for path in sorted((shared_data / folder / "images").iterdir())[:60]:
            with Image.open(path) as image:
                assert np.array_equal(ok(path), np.asarray(image.convert("RGB"))), path
            seen += 1
    assert seen == 180
