"""DenseNet-169 and NASNet-A mobile against forward passes that share no code with them.

The references below are plain numpy on arrays in Keras's layout (images x height x width x
channels), driven by the parameter dictionary alone. The networks themselves were compared once
with torchvision's and Keras's own; what those gave for the same weights is kept here.
"""

import hashlib
import re
import runpy
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save

from sightline.densenet import DenseNet169
from sightline.nasnet import NASNetMobile
from sightline.problems import SightlineError
from sightline.torch_backbones import build_module, load_torch_backbone, published_weights
from sightline.trainable_backbones import load_trainable_backbone

# ---- the published names and shapes, by rule


def densenet_shapes():
    shapes = {"features.conv0.weight": (64, 3, 7, 7)}

    def norm(name, channels):
        for array in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"features.{name}.{array}"] = (channels,)

    norm("norm0", 64)
    channels = 64
    for block, layers in enumerate((6, 12, 32, 32), 1):
        for layer in range(1, layers + 1):
            name = f"denseblock{block}.denselayer{layer}"
            norm(f"{name}.norm1", channels)
            shapes[f"features.{name}.conv1.weight"] = (128, channels, 1, 1)
            norm(f"{name}.norm2", 128)
            shapes[f"features.{name}.conv2.weight"] = (32, 128, 3, 3)
            channels += 32
        if block < 4:
            norm(f"transition{block}.norm", channels)
            shapes[f"features.transition{block}.conv.weight"] = (channels // 2, channels, 1, 1)
            channels //= 2
    norm("norm5", channels)
    return shapes | {"classifier.weight": (1000, 1664), "classifier.bias": (1000,)}


#: Cell, filters, channels of its input, channels of the one before, whether that is twice as large.
CELLS = [("stem_1", 11, 32, None, False), ("stem_2", 22, 44, 32, True)]
CELLS += [("0", 44, 88, 44, True), ("1", 44, 264, 88, False)]
CELLS += [(name, 44, 264, 264, False) for name in ("2", "3")]
CELLS += [("reduce_4", 88, 264, 264, False), ("5", 88, 352, 264, True), ("6", 88, 528, 352, False)]
CELLS += [(name, 88, 528, 528, False) for name in ("7", "8")]
CELLS += [("reduce_8", 176, 528, 528, False), ("9", 176, 704, 528, True)]
CELLS += [("10", 176, 1056, 704, False)]
CELLS += [(name, 176, 1056, 1056, False) for name in ("11", "12")]


def nasnet_shapes():
    shapes = {"stem_conv1/kernel": (3, 3, 3, 32)}

    def norm(name, channels):
        for array in ("gamma", "beta", "moving_mean", "moving_variance"):
            shapes[f"{name}/{array}"] = (channels,)

    def separable(block, size, channels, filters):
        for number, inputs in ((1, channels), (2, filters)):
            name = f"separable_conv_{number}_{block}"
            shapes[f"{name}/depthwise_kernel"] = (size, size, inputs, 1)
            shapes[f"{name}/pointwise_kernel"] = (1, 1, inputs, filters)
            norm(f"separable_conv_{number}_bn_{block}", filters)

    norm("stem_bn1", 32)
    for cell, filters, now, before, halved in CELLS:
        kind = "normal" if cell.isdigit() else "reduction"
        shapes[f"{kind}_conv_1_{cell}/kernel"] = (1, 1, now, filters)
        norm(f"{kind}_bn_1_{cell}", filters)
        if halved:
            for half in (1, 2):
                shapes[f"adjust_conv_{half}_{cell}/kernel"] = (1, 1, before, filters // 2)
        elif before:
            shapes[f"adjust_conv_projection_{cell}/kernel"] = (1, 1, before, filters)
        if before:
            norm(f"adjust_bn_{cell}", filters)
        p = filters if before else now
        if kind == "normal":
            sizes = {"left1": (5, filters), "right1": (3, p), "left2": (5, p), "right2": (3, p)}
            sizes["left5"] = (3, filters)
        else:
            sizes = {"left1": (5, filters), "right1": (7, p), "right2": (7, p), "right3": (5, p)}
            sizes["left4"] = (3, filters)
        for block, (size, channels) in sizes.items():
            separable(f"{kind}_{block}_{cell}", size, channels, filters)
    return shapes | {"predictions/kernel": (1056, 1000), "predictions/bias": (1000,)}


SHAPES = {"densenet169": densenet_shapes(), "nasnet-mobile": nasnet_shapes()}


def random_weights(shapes):
    """Weights that keep the activations near 1, each array from its name alone."""
    weights = {}
    for name, shape in shapes.items():
        unit = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode()))).random(shape)
        array = re.split("[./]", name)[-1]
        if array in ("beta", "bias", "moving_mean", "running_mean"):
            unit -= 0.5
        elif len(shape) == 1:  # scales and variances
            unit += 0.5
        else:
            if array == "depthwise_kernel":
                inputs = shape[0] * shape[1]
            else:
                inputs = np.prod(shape[:-1] if array.endswith("kernel") else shape[1:])
            unit = (unit - 0.5) * np.sqrt(12 / inputs)
        weights[name] = unit.astype(np.float32)
    return weights


def random_images(height, width):
    """Two images of large patches with some noise, so that they differ after averaging too."""
    random = np.random.Generator(np.random.PCG64(7))
    patches = np.kron(random.random((2, 3, 8, 8)), np.ones((height // 8, width // 8)))
    noise = random.random((2, 3, height, width))
    return (2 * (0.7 * patches + 0.3 * noise) - 1).astype(np.float32)


WEIGHTS = {name: random_weights(shapes) for name, shapes in SHAPES.items()}


@pytest.mark.parametrize(
    ("name", "count", "parameters", "digest"),
    [
        # Of the state dictionary of torchvision 0.29.2's densenet169.
        ("densenet169", 846, 14_149_480, "a9eb5c1c253d9342"),
        # Of `layer.name/weight.name` of Keras 3.15.1's NASNetMobile, with its moving averages.
        ("nasnet-mobile", 1126, 5_326_716, "e4028aee586e2165"),
    ],
)
def test_the_names_and_shapes_are_the_published_ones(name, count, parameters, digest):
    shapes = SHAPES[name]
    assert len(shapes) == count
    text = "\n".join(f"{key} {shape}" for key, shape in sorted(shapes.items()))
    assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)

    network = build_module(name, WEIGHTS[name], "weights")
    assert {key: array.shape for key, array in published_weights(network).items()} == shapes
    # torchvision counts what is learnt, Keras the moving averages as well.
    learnt = sum(parameter.numel() for parameter in network.parameters())
    averages = sum(np.prod(shapes[key]) for key in shapes if "/moving_" in key)
    assert learnt + averages == parameters
    bare = build_module(name, without_classifier(name), "weights")
    assert bare.classifier is None
    without = sum(parameter.numel() for parameter in bare.parameters()) + averages
    assert without == {"densenet169": 12_484_480, "nasnet-mobile": 4_269_716}[name]


def without_classifier(name):
    head = ("classifier.", "predictions/")
    return {key: array for key, array in WEIGHTS[name].items() if not key.startswith(head)}


# ---- the references, in numpy


def relu(x):
    return np.maximum(x, 0)


def padded(x, top, bottom, left, right, value=0.0):
    pads = ((0, 0), (top, bottom), (left, right), (0, 0))
    return np.pad(x, pads, constant_values=value)


def windows(x, size, stride):
    """The places that each tap of a kernel sees, tap by tap."""
    height, width = ((length - size) // stride + 1 for length in x.shape[1:3])
    for row in range(size):
        for column in range(size):
            rows = slice(row, row + stride * (height - 1) + 1, stride)
            columns = slice(column, column + stride * (width - 1) + 1, stride)
            yield (row, column), x[:, rows, columns]


def conv(x, kernel, stride=1):
    return sum(seen @ kernel[tap] for tap, seen in windows(x, kernel.shape[0], stride))


def depthwise(x, kernel, stride):
    return sum(seen * kernel[tap][:, 0] for tap, seen in windows(x, kernel.shape[0], stride))


def batch_norm(x, scale, shift, mean, variance, epsilon):
    return (x - mean) / np.sqrt(variance + epsilon) * scale + shift


def densenet_reference(weights, x):
    """What each layer gives: the newest channels of a dense layer, all of the others."""
    given = {}
    w = {key: array.astype(np.float64) for key, array in weights.items()}

    def norm(name, x):
        arrays = (w[f"features.{name}.{a}"] for a in ("weight", "bias", "running_mean"))
        return batch_norm(x, *arrays, w[f"features.{name}.running_var"], 1e-5)

    def convolve(name, x, stride=1):
        return conv(x, w[f"features.{name}.weight"].transpose(2, 3, 1, 0), stride)

    x = x.transpose(0, 2, 3, 1).astype(np.float64)
    x = given["conv0"] = convolve("conv0", padded(x, 3, 3, 3, 3), 2)
    x = given["norm0"] = norm("norm0", x)
    around = padded(relu(x), 1, 1, 1, 1, -np.inf)
    x = given["pool0"] = np.max([seen for _, seen in windows(around, 3, 2)], axis=0)
    for block, layers in enumerate((6, 12, 32, 32), 1):
        for layer in range(1, layers + 1):
            name = f"denseblock{block}.denselayer{layer}"
            y = convolve(f"{name}.conv1", relu(norm(f"{name}.norm1", x)))
            y = padded(relu(norm(f"{name}.norm2", y)), 1, 1, 1, 1)
            given[name] = convolve(f"{name}.conv2", y)
            x = np.concatenate([x, given[name]], axis=3)
        if block < 4:
            x = convolve(f"transition{block}.conv", relu(norm(f"transition{block}.norm", x)))
            x = sum(seen for _, seen in windows(x, 2, 2)) / 4
            given[f"transition{block}"] = x
    given["norm5"] = norm("norm5", x)
    features = relu(given["norm5"]).mean((1, 2))
    return given, features, features @ w["classifier.weight"].T + w["classifier.bias"]


def nasnet_reference(weights, x):
    """What each batch norm and each cell gives, by the name of Keras's layer."""
    given = {}
    w = {key: array.astype(np.float64) for key, array in weights.items()}

    def norm(name, x):
        arrays = (w[f"{name}/{a}"] for a in ("gamma", "beta", "moving_mean", "moving_variance"))
        given[name] = batch_norm(x, *arrays, 1e-3)
        return given[name]

    def for_stride_2(x, size):
        # An even length needs one zero fewer in front: as many windows, one zero fewer in all.
        front = [size // 2 - 1 if length % 2 == 0 else size // 2 for length in x.shape[1:3]]
        return padded(x, front[0], size // 2, front[1], size // 2)

    def separable(block, x, stride=1):
        for number in (1, 2):
            name = f"separable_conv_{number}_{block}"
            kernel = w[f"{name}/depthwise_kernel"]
            half = kernel.shape[0] // 2
            x = relu(x)
            x = for_stride_2(x, len(kernel)) if stride == 2 else padded(x, half, half, half, half)
            x = conv(depthwise(x, kernel, stride), w[f"{name}/pointwise_kernel"])
            x = norm(f"separable_conv_{number}_bn_{block}", x)
            stride = 1
        return x

    def average(x):
        counted = padded(np.ones_like(x), 1, 1, 1, 1)
        total = sum(seen for _, seen in windows(padded(x, 1, 1, 1, 1), 3, 1))
        return total / sum(seen for _, seen in windows(counted, 3, 1))

    def adjusted(cell, p):
        if f"adjust_conv_projection_{cell}/kernel" in w:
            p = conv(relu(p), w[f"adjust_conv_projection_{cell}/kernel"])
        elif f"adjust_conv_1_{cell}/kernel" in w:
            odd = padded(relu(p), 0, 1, 0, 1)[:, 1:, 1:]
            halves = [relu(p)[:, ::2, ::2], odd[:, ::2, ::2]]
            kernels = [w[f"adjust_conv_{half}_{cell}/kernel"] for half in (1, 2)]
            p = np.concatenate([conv(h, k) for h, k in zip(halves, kernels, strict=True)], axis=3)
        else:
            return p
        return norm(f"adjust_bn_{cell}", p)

    def normal(cell, x, p):
        p = adjusted(cell, p)
        h = norm(f"normal_bn_1_{cell}", conv(relu(x), w[f"normal_conv_1_{cell}/kernel"]))
        first = separable(f"normal_left1_{cell}", h) + separable(f"normal_right1_{cell}", p)
        second = separable(f"normal_left2_{cell}", p) + separable(f"normal_right2_{cell}", p)
        fifth = separable(f"normal_left5_{cell}", h) + h
        return [p, first, second, average(h) + p, average(p) + average(p), fifth]

    def reduction(cell, x, p):
        p = adjusted(cell, p)
        h = norm(f"reduction_bn_1_{cell}", conv(relu(x), w[f"reduction_conv_1_{cell}/kernel"]))
        seen = [place for _, place in windows(for_stride_2(h, 3), 3, 2)]
        maximum, mean = np.max(seen, axis=0), np.mean(seen, axis=0)
        first = separable(f"reduction_left1_{cell}", h, 2)
        first = first + separable(f"reduction_right1_{cell}", p, 2)
        second = maximum + separable(f"reduction_right2_{cell}", p, 2)
        third = mean + separable(f"reduction_right3_{cell}", p, 2)
        fifth = separable(f"reduction_left4_{cell}", first) + maximum
        return [second, third, second + average(first), fifth]

    x = x.transpose(0, 2, 3, 1).astype(np.float64)
    x = p = norm("stem_bn1", conv(x, w["stem_conv1/kernel"], 2))
    for cell, *_ in CELLS:
        build = normal if cell.isdigit() else reduction
        given[f"cell {cell}"] = np.concatenate(build(cell, x, p), axis=3)
        x, p = given[f"cell {cell}"], x
    features = relu(x).mean((1, 2))
    return given, features, features @ w["predictions/kernel"] + w["predictions/bias"]


# ---- layer by layer


def outputs(network, images, names):
    """Run a network, and keep what the modules of the given names give, channels last."""
    given = {}

    def keep(name):
        def hook(module, inputs, output):
            given[name] = output.permute(0, 2, 3, 1).numpy().copy()

        return hook

    hooks = [module.register_forward_hook(keep(names[key]))
             for key, module in network.named_modules() if key in names]  # fmt: skip
    with torch.inference_mode():
        features = network(torch.from_numpy(images))
        scores = network.classifier(features)
    for hook in hooks:
        hook.remove()
    return given, features.numpy(), scores.numpy()


def assert_equal(found, expected, layers):
    assert found[0].keys() == expected[0].keys()
    assert len(found[0]) == layers
    for name, array in expected[0].items():
        np.testing.assert_allclose(found[0][name], array, atol=1e-4, rtol=0, err_msg=name)
        assert 0.2 < array.std() < 5, name  # else the tolerance would mean nothing
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4, rtol=0)


def test_densenet_layer_by_layer():
    images = random_images(96, 64)
    expected = densenet_reference(WEIGHTS["densenet169"], images)
    network = build_module("densenet169", WEIGHTS["densenet169"], "weights")
    given, *rest = outputs(network, images, {f"features.{name}": name for name in expected[0]})
    for name in given:
        if "denselayer" in name:
            given[name] = given[name][..., -32:]
    # 82 dense layers, 3 transitions, conv0, norm0, pool0, norm5.
    assert_equal((given, *rest), expected, 89)
    assert rest[0].shape == (2, DenseNet169.dimension)


def test_nasnet_layer_by_layer():
    # Lengths of 111, 56, 28, 14, 7 and of 99, 50, 25, 13, 7: even and odd, and not alike.
    images = random_images(224, 200)
    expected = nasnet_reference(WEIGHTS["nasnet-mobile"], images)
    network = build_module("nasnet-mobile", WEIGHTS["nasnet-mobile"], "weights")
    names = {f"cells.{cell}": f"cell {cell}" for cell, *_ in CELLS}
    for key, module in network.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            names[key] = network.published(f"{key}.weight")[0].partition("/")[0]
    found = outputs(network, images, names)
    # 16 cells of five blocks of two batch norms, one on their input, one on all but the first's
    # other input, one in the stem; and the cells themselves.
    assert_equal(found, expected, 16 * (10 + 1) + 15 + 1 + 16)
    assert found[1].shape == (2, NASNetMobile.dimension)


# ---- what torchvision and Keras themselves give for these weights and images


@pytest.mark.parametrize(
    ("name", "features", "scores"),
    [
        # torchvision 0.29.2's DenseNet on torch 2.13.0: every 230th feature, 200th class score.
        (
            "densenet169",
            [
                [0.0650786, 0, 0.1810260, 0, 1.6318380, 0.0125510, 0.3508611, 0],
                [0.0599622, 0, 0.1769650, 0, 1.6334991, 0.0114979, 0.3512066, 0],
            ],
            [
                [-0.3863057, -0.7781439, 0.9378566, 0.8786026, 0.1505439],
                [-0.3832723, -0.7750088, 0.9375646, 0.8777023, 0.1549664],
            ],
        ),
        # Keras 3.15.1's NASNetMobile on JAX 0.10.2: every 150th feature, 200th class score.
        (
            "nasnet-mobile",
            [
                [0, 0, 0.1847880, 0.0061891, 0, 2.1198225, 0.9868874, 4.5155377],
                [0, 0, 0.1860969, 0.0060120, 0, 2.1630282, 0.9592322, 4.4868274],
            ],
            [
                [0.5499743, 0.8000414, 0.7303542, -0.1684805, 0.4731019],
                [0.5893545, 0.8081591, 0.7668816, -0.1849469, 0.4846799],
            ],
        ),
    ],
)
def test_the_publishers_own_networks_give_the_same(files, name, features, scores):
    backbone = load_torch_backbone(name, files[name])
    found = backbone.features(random_images(224, 224))
    assert (found.shape, found.dtype) == ((2, backbone.dimension), np.float32)
    step = {"densenet169": 230, "nasnet-mobile": 150}[name]
    np.testing.assert_allclose(found[:, ::step], features, atol=2e-5)
    np.testing.assert_allclose(backbone.class_scores(found)[:, ::200], scores, atol=2e-5)


# ---- loading


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    paths = {name: folder / f"{name}.safetensors" for name in WEIGHTS}
    for name, path in paths.items():
        save_file(WEIGHTS[name], path)
    return paths


@pytest.mark.parametrize("name", ["densenet169", "nasnet-mobile"])
def test_a_backbone_says_what_its_features_depend_on(files, name):
    before = torch.random.get_rng_state()
    backbone = load_torch_backbone(name, files[name])
    assert torch.equal(torch.random.get_rng_state(), before)
    digest = hashlib.sha256(files[name].read_bytes()).hexdigest()
    assert backbone.manifest()["weights_sha256"] == digest
    assert backbone.manifest()["backbone"] == backbone.name == name
    assert backbone.dimension == {"densenet169": 1664, "nasnet-mobile": 1056}[name]

    pixels = np.random.default_rng(3).integers(0, 256, (256, 256, 3), np.uint8)
    middle = pixels[16:240, 16:240].transpose(2, 0, 1).astype(np.float64)
    if name == "densenet169":
        mean, deviation = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])[..., None, None]
        expected = (middle / 255 - mean) / deviation
    else:
        expected = middle / 127.5 - 1
    np.testing.assert_allclose(backbone.preprocess(pixels), expected, atol=1e-5)

    assert backbone.features(np.empty((0, 3, 224, 224), np.float32)).shape == (
        0,
        backbone.dimension,
    )
    with pytest.raises(ValueError, match="3 x 224 x 224"):
        backbone.features(np.zeros((1, 3, 224, 200), np.float32))


def test_old_names_of_torchvision_are_accepted():
    """The file that torchvision publishes writes `norm.1`; newer ones also count batches."""
    old, renamed = {}, 0
    for key, array in WEIGHTS["densenet169"].items():
        name = re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", key)
        renamed += name != key
        old[name] = array
    assert renamed == 82 * 10
    assert "features.denseblock3.denselayer31.norm.1.weight" in old
    old["features.norm0.num_batches_tracked"] = np.array(0)
    assert_same_weights(build_module("densenet169", old, "old"), WEIGHTS["densenet169"])
    old["features.denseblock1.denselayer1.norm1.weight"] = np.ones(64, np.float32)
    with pytest.raises(SightlineError, match=r"old holds .*norm1\.weight twice"):
        build_module("densenet169", old, "old")


def test_scoped_names_of_keras_are_accepted():
    scoped = {f"scope_1/adjust_block/{key}:0": a for key, a in WEIGHTS["nasnet-mobile"].items()}
    module = build_module("nasnet-mobile", scoped, "scoped")
    assert_same_weights(module, WEIGHTS["nasnet-mobile"])


def assert_same_weights(module, weights):
    found = published_weights(module)
    assert found.keys() == weights.keys()
    for key, array in found.items():
        assert array.flags.c_contiguous
        np.testing.assert_array_equal(array, weights[key], err_msg=key)


@pytest.mark.parametrize("name", ["densenet169", "nasnet-mobile"])
def test_without_a_classifier_there_are_features_but_no_class_scores(tmp_path, name):
    file = tmp_path / "no_top.safetensors"
    save_file(without_classifier(name), file)
    backbone = load_torch_backbone(name, file)
    found = backbone.features(random_images(224, 224)[:1])
    with pytest.raises(SightlineError, match=r"no_top\.safetensors has no layer of class scores"):
        backbone.class_scores(found)


def changed(key, change):
    def apply(weights):
        weights[key] = change(weights[key])

    return apply


def nan(array):
    return np.where(np.arange(array.size).reshape(array.shape) == 3, np.nan, array)


REFUSED = {
    "missing": (lambda w: w.pop("adjust_bn_3/beta"), "lacks 'adjust_bn_3/beta'."),
    "half a classifier": (lambda w: w.pop("predictions/bias"), "lacks 'predictions/bias'."),
    "unknown": (
        lambda w: w.update({"stem_conv1/bias": w["stem_bn1/beta"], "x/y": w["stem_bn1/beta"]}),
        "holds, beside its parameters, 'stem_conv1/bias' and 1 more.",
    ),
    "torch's layout": (
        changed("stem_conv1/kernel", lambda a: a.transpose(3, 2, 0, 1)),
        "stem_conv1/kernel has shape (32, 3, 3, 3); expected (3, 3, 3, 32).",
    ),
    "depthwise": (
        changed("separable_conv_1_normal_left1_0/depthwise_kernel", lambda a: a[:3, :3]),
        "separable_conv_1_normal_left1_0/depthwise_kernel has shape (3, 3, 44, 1); "
        "expected (5, 5, 44, 1).",
    ),
    "dense": (
        changed("predictions/kernel", lambda a: a.T),
        "predictions/kernel has shape (1000, 1056); expected (1056, 1000).",
    ),
    "NaN": (changed("stem_bn1/beta", nan), "stem_bn1/beta holds NaN or infinity."),
    "too large for float32": (
        changed("stem_bn1/gamma", lambda a: a.astype(np.float64) + 1e300),
        "stem_bn1/gamma holds NaN or infinity.",
    ),
    "negative variance": (
        changed("stem_bn1/moving_variance", lambda a: a - 1),
        "stem_bn1/moving_variance is a variance, but holds negative numbers.",
    ),
    "whole numbers": (
        changed("stem_bn1/beta", lambda a: a.astype(np.int32)),
        "stem_bn1/beta holds int32 numbers; expected float32.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_weights_that_do_not_fit_are_refused_with_their_name(case):
    change, sentence = REFUSED[case]
    weights = dict(WEIGHTS["nasnet-mobile"])
    change(weights)
    with pytest.raises(SightlineError) as error:
        build_module("nasnet-mobile", weights, "folder/file.safetensors")
    assert str(error.value).startswith("folder/file.safetensors")
    assert str(error.value).endswith(sentence)


def test_the_other_networks_weights_are_refused():
    with pytest.raises(SightlineError, match="not a weight file of nasnet-mobile: it lacks"):
        build_module("nasnet-mobile", WEIGHTS["densenet169"], "file")
    with pytest.raises(SightlineError, match=r"lacks 'features\.conv0\.weight' and 843 more"):
        build_module("densenet169", WEIGHTS["nasnet-mobile"], "file")


def test_files_that_cannot_be_used_are_refused(files, tmp_path):
    def refused(file, sentence, name="nasnet-mobile"):
        with pytest.raises(SightlineError, match=sentence):
            load_torch_backbone(name, file)

    refused(tmp_path / "none.safetensors", r"none\.safetensors cannot be read: No such file")
    refused(tmp_path, "cannot be read: Is a directory")
    refused(Path("densenet169.pth"), r"convert_weights\.py densenet169 .*\.pth", "densenet169")
    refused(Path("NASNet-mobile.h5"), r"convert_weights\.py nasnet-mobile NASNet-mobile\.h5")
    refused(files["nasnet-mobile"], "no backbone 'resnet50' in torch", "resnet50")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(files["nasnet-mobile"].read_bytes()[:-1000])
    refused(damaged, r"damaged\.safetensors is not a whole safetensors file")
    half = tmp_path / "half.safetensors"
    half.write_bytes(save({"stem_bn1/beta": torch.zeros(32, dtype=torch.bfloat16)}))
    refused(half, r"half\.safetensors holds BF16 numbers; expected F32")


# ---- training on


@pytest.mark.parametrize("name", ["densenet169", "nasnet-mobile"])
def test_a_network_learns_and_its_weights_can_be_kept(files, tmp_path, name):
    backbone = load_torch_backbone(name, files[name])
    images = random_images(224, 224)
    before = backbone.features(images)
    module = backbone.network.module.train()
    module(torch.from_numpy(images[:, :, :64, :64].copy())).square().mean().backward()
    learnt = dict(module.named_parameters())
    with torch.no_grad():
        for key, parameter in learnt.items():
            if not key.startswith(("classifier", "predictions")):
                assert parameter.grad.isfinite().all(), key
                assert parameter.grad.abs().max() > 0, key
                parameter -= 0.05 * parameter.grad
    # The features of an image never depend on the others of its batch, even after training.
    after = backbone.features(images)
    np.testing.assert_allclose(backbone.features(images[1:]), after[1:], atol=1e-5)
    assert np.abs(after - before).max() > 1e-3

    tuned = tmp_path / "tuned.safetensors"
    save_file(published_weights(module), tuned)
    again = load_torch_backbone(name, tuned)
    np.testing.assert_array_equal(again.features(images), after)
    assert again.weights_sha256 != backbone.weights_sha256


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_network_to_tune_learns_in_all_its_parts_and_is_opened_again(files, name):
    trainable = load_trainable_backbone(name, files[name])
    pixels = np.random.default_rng(3).integers(0, 256, (1, 224, 224, 3), np.uint8)
    features = trainable.module(trainable.inputs(pixels))
    features.sum().backward()
    assert all(parameter.grad is not None for parameter in trainable.module.parameters())
    opened = trainable.open()
    assert opened.name == name
    assert opened.preprocessing == trainable.preprocessing
    found = opened.features(trainable.inputs(pixels).numpy())
    assert found == pytest.approx(features.detach().numpy(), rel=1e-5)


# ---- the script that converts the published files

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "convert_weights.py"


def convert(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return end.value.code


def test_a_file_of_torchvision_is_converted(tmp_path, monkeypatch, capsys):
    old = {
        re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", key): torch.from_numpy(array)
        for key, array in WEIGHTS["densenet169"].items()
    }
    torch.save(old, tmp_path / "published.pth")
    for output in ("one", "two"):
        code = convert(monkeypatch, "densenet169", tmp_path / "published.pth", tmp_path / output)
        assert code == 0
    assert "846 arrays, sha256 " in capsys.readouterr().err
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    (tmp_path / "one").rename(tmp_path / "one.safetensors")
    backbone = load_torch_backbone("densenet169", tmp_path / "one.safetensors")
    assert_same_weights(backbone.network.module, WEIGHTS["densenet169"])

    code = convert(monkeypatch, "nasnet-mobile", tmp_path / "published.pth", tmp_path / "three")
    assert code == 1
    assert "published.pth is not a weight file of nasnet-mobile" in capsys.readouterr().err
    (tmp_path / "bad.pth").write_bytes(b"cposix\nsystem\n(S'true'\ntR.")
    assert convert(monkeypatch, "densenet169", tmp_path / "bad.pth", tmp_path / "three") == 1
    assert "is not a state dictionary of tensors" in capsys.readouterr().err
    assert not (tmp_path / "three").exists()


@pytest.mark.parametrize("root", ["", "model_weights/"], ids=["weights", "whole model"])
def test_a_file_of_keras_is_converted(tmp_path, monkeypatch, root):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "published.h5", "w") as file:
        for key, array in WEIGHTS["nasnet-mobile"].items():
            file[f"{root}{key.partition('/')[0]}/scope_1/{key}:0"] = array
        if root:
            file["optimizer_weights/iteration:0"] = 3
    output = tmp_path / "one.safetensors"
    assert convert(monkeypatch, "nasnet-mobile", tmp_path / "published.h5", output) == 0
    found = load_file(output)
    assert found.keys() == WEIGHTS["nasnet-mobile"].keys()
    assert all(np.array_equal(found[key], array) for key, array in WEIGHTS["nasnet-mobile"].items())
