"""The backbone's features against those of the measuring data, which were made elsewhere."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sightline.backbones import load_backbone
from sightline.features import FeatureStore


@pytest.fixture(scope="module")
def lite0():
    return load_backbone(threads=1)


def cosines(backbone, images, expected):
    found = np.concatenate(
        [backbone.features(backbone.preprocess(np.asarray(image))[None]) for image in images]
    )
    norms = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    return (found * expected).sum(axis=1) / norms


def first_generation(file):
    """An image of the COCO folder before it was compressed a second time.

    Its DCT coefficients show that it was a JPEG of quality 75 before it became one of quality 82
    (of the multiples of 6 at frequency (2, 2) only those next to multiples of 8 occur). Rounding
    to the coarser grid again gives the first one back, but for the colours, which were blurred
    when they were taken apart and put together.
    """
    luma, colours = Image.open(file), Image.open(file)
    luma.draft("L", luma.size)
    colours.draft("YCbCr", (colours.width // 2, colours.height // 2))
    planes = [np.asarray(luma)]
    for plane in (1, 2):
        blurred = np.asarray(colours)[:, :, plane].astype(np.float32)
        sharp = blurred.copy()
        for _ in range(2):
            sharp += blurred - blur(sharp)
        plane_bytes = np.rint(sharp).clip(0, 255).astype(np.uint8)
        planes.append(plane_bytes.repeat(2, axis=0).repeat(2, axis=1))
    stream = io.BytesIO()
    bands = [Image.fromarray(plane) for plane in planes]
    Image.merge("YCbCr", bands).save(stream, "JPEG", quality=75)
    return Image.open(stream).convert("RGB")


def blur(plane):
    """What doubling a plane (by libjpeg's triangle) and halving it again does."""
    for axis in (0, 1):
        padded = np.pad(plane, [(1, 1) if side == axis else (0, 0) for side in (0, 1)], "edge")
        before, after = np.split(padded, [-2], axis)[0], np.split(padded, [2], axis)[1]
        plane = 0.75 * plane + 0.125 * (before + after)
    return plane


def sample(shared_data, corpus, count):
    files = sorted((shared_data / corpus / "images").glob("*.jpg"))
    files = files[:: len(files) // count][:count]
    assert len(files) == count
    store = FeatureStore.open(shared_data / corpus / "features")
    return files, store.vectors(store.rows([file.name for file in files]))


def test_given_coco_features(lite0, shared_data):
    """The given features are those of the images before their second compression.

    The images as they are come to a cosine of 0.99, which is what that compression costs: going
    from uncompressed pixels to JPEG quality 82 costs 0.018 (20 guide and textbook images).
    """
    files, expected = sample(shared_data, "coco", 50)
    as_given = cosines(lite0, [Image.open(file) for file in files], expected)
    assert as_given.mean() > 0.99
    assert as_given.min() > 0.975
    restored = cosines(lite0, [first_generation(file) for file in files], expected)
    assert np.median(restored) > 0.999
    assert restored.mean() > 0.9985


@pytest.mark.parametrize("corpus", ["openstax", "guides"])
def test_given_features_of_images_that_were_made_smaller(lite0, shared_data, corpus):
    """Those images were shrunk to 240 pixels and compressed after the features were made."""
    files, expected = sample(shared_data, corpus, 40)
    assert cosines(lite0, [Image.open(file) for file in files], expected).mean() > 0.95


def test_resizing_is_that_of_the_given_features(lite0, shared_data):
    """Images under 240 pixels were not shrunk, so they tell the ways of resizing apart."""
    files = sorted((shared_data / "guides" / "images").glob("*.jpg"))
    files = [file for file in files if min(Image.open(file).size) < 240][:60]
    store = FeatureStore.open(shared_data / "guides" / "features")
    expected = store.vectors(store.rows([file.name for file in files]))
    images = [Image.open(file).convert("RGB") for file in files]
    assert len(images) == 60
    bicubic = cosines(lite0, images, expected)
    preprocessing = replace(lite0.preprocessing, interpolation="bilinear")
    bilinear = cosines(replace(lite0, preprocessing=preprocessing), images, expected)
    assert np.median(bicubic) > 0.99
    assert (bicubic > bilinear).mean() > 0.6
