"""The units of work: one shard linked, or the features of one shard's images.

A unit may be run anywhere, any number of times: its result is the same, and it appears whole or
not at all. Engines only decide where and when (`engines/`).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from sightline.backbones import Backbone
from sightline.clip_model import Model
from sightline.corpus import Corpus, read
from sightline.decode_pool import DecodePool
from sightline.files import atomic_writer
from sightline.link_records import link_records, open_images, open_model
from sightline.linking import LinkChoices
from sightline.machine import peak_memory_bytes
from sightline.model import BUNDLED
from sightline.problems import Problems, SightlineError
from sightline.shards import Shard, ShardResult, finish, finished
from sightline.storage import (
    is_folder,
    is_remote,
    joined,
    local_copy,
    place_of,
    scratch_folder,
    size_of,
    upload,
)

LINKS = ".links.jsonl"
#: Lines are written so many at a time.
_LINES = 1024

Unit = Callable[[Shard], ShardResult]


@dataclass(frozen=True, kw_only=True)
class LinkWork:
    """How shards are linked: what every worker is told."""

    model: str
    #: Names the model's files, so that another model under the same name is another work.
    model_hash: str
    #: A feature store for all shards, or a folder with one per shard.
    features: str | None = None
    choices: LinkChoices = field(default_factory=LinkChoices)
    matrix: bool = False
    split: str | None = None
    strict: bool = False

    @cached_property
    def key(self) -> str:
        """Names the work; what was made under another name has to be made anew."""
        return _key(self)

    def outputs(self, shard: Shard) -> list[str]:
        """The places of a shard's result."""
        return [joined(shard.output, f"{shard.name}{LINKS}")]

    @contextmanager
    def opened(self) -> Iterator[Unit]:
        """Load the model once; gives what links a shard."""
        with _model_folder(self.model) as folder:
            model = open_model(folder)
        with DecodePool(1) as pool:
            yield lambda shard: link_shard(shard, model, self, pool)


@dataclass(frozen=True, kw_only=True)
class FeaturesWork:
    """How the features of shards are computed."""

    backbone: str
    weights: str | None = None
    batch: int = 8
    strict: bool = False

    @cached_property
    def key(self) -> str:
        """Names the work."""
        return _key(self)

    def outputs(self, shard: Shard) -> list[str]:
        """The places of a shard's result: its feature store."""
        names = ("id2row.json", "manifest.json")
        return [joined(joined(shard.output, shard.name), name) for name in names]

    @contextmanager
    def opened(self) -> Iterator[Unit]:
        """Load the backbone once; gives what computes a shard."""
        from sightline.backbone_names import open_backbone

        network = open_backbone(self.backbone, Path(self.weights) if self.weights else None, 1)
        yield lambda shard: features_of_shard(shard, network, self)


Work = LinkWork | FeaturesWork


def link_work(
    model: str,
    features: str | Path | None,
    choices: LinkChoices,
    *,
    matrix: bool = False,
    split: str | None = None,
    strict: bool = False,
) -> LinkWork:
    """The work of linking with a model and features that the user names."""
    if features is not None and not is_remote(place_of(features)) and not Path(features).is_dir():
        raise SightlineError(
            f"--features {features}: there is no such folder; name a feature store, or a folder of "
            "stores with one for each shard."
        )
    place = model if model == "default" else place_of(model)
    if not is_remote(place) and not _folder_of(place).is_dir():
        open_model(model)  # says what is wrong with it
    return LinkWork(
        model=place,
        model_hash=model_hash(place),
        features=None if features is None else place_of(features),
        choices=choices,
        matrix=matrix,
        split=split,
        strict=strict,
    )


def features_work(
    backbone: str, weights: Path | None, batch: int, *, strict: bool = False
) -> FeaturesWork:
    """The work of computing features with a backbone that the user names."""
    # A name stays one; a folder of transformers has to be found from anywhere.
    name = place_of(backbone) if Path(backbone).is_dir() else backbone
    given = None if weights is None else place_of(weights)
    return FeaturesWork(backbone=name, weights=given, batch=batch, strict=strict)


def work_to_json(work: Work) -> str:
    """A work as a line of JSON."""
    kind = "link" if isinstance(work, LinkWork) else "features"
    return orjson.dumps({"kind": kind, **asdict(work)}).decode()


def work_from_json(data: str | bytes) -> Work:
    """Read what `work_to_json` wrote."""
    record = orjson.loads(data)
    if record.pop("kind") == "features":
        return FeaturesWork(**record)
    return LinkWork(**record | {"choices": LinkChoices(**record["choices"])})


def run_unit(unit: Unit, work: Work, shard: Shard) -> ShardResult:
    """One shard, unless it is done; whatever goes wrong with it is said, and the others go on."""
    try:
        done = finished(shard, work.key, work.outputs(shard))
        if done is not None:
            return done
        started, cpu_started = time.monotonic(), time.process_time()
        result = replace(
            unit(shard),
            seconds=round(time.monotonic() - started, 3),
            cpu_seconds=round(time.process_time() - cpu_started, 3),
            memory_bytes=peak_memory_bytes() or 0,
            source_bytes=size_of(shard.source) or 0,
            output_bytes=sum(size_of(place) or 0 for place in work.outputs(shard)),
            work=work.key,
        )
        finish(shard, result)
    except SightlineError as error:
        return ShardResult(shard=shard.name, error=str(error))
    except Exception as error:  # one shard must not end the work on thousands
        return ShardResult(shard=shard.name, error=f"{type(error).__name__}: {error}")
    return result


def link_shard(
    shard: Shard, model: Model, work: LinkWork, pool: DecodePool | None = None
) -> ShardResult:
    """Link the documents of one shard, and write their records in one step."""
    problems = Problems(strict=work.strict)
    images: Counter[str] = Counter()
    documents = links = 0
    (output,) = work.outputs(shard)
    with ExitStack() as stack:
        features = _features_of(shard, work.features, stack)
        corpus = _opened(shard, work.split, problems, stack, unpack=features is None)
        source = open_images(model, corpus, features, pool=pool)
        records = link_records(model, corpus, source, work.choices, work.matrix)
        target = Path(output)
        if is_remote(output):
            target = stack.enter_context(scratch_folder()) / "links.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(target) as file:
            lines = []
            for record in records:
                documents += 1
                links += len(record["links"])
                images.update([image["status"] for image in record["images"]])
                lines.append(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
                if len(lines) == _LINES:
                    file.write(b"".join(lines))
                    lines.clear()
            file.write(b"".join(lines))
            _refuse_damage(problems, documents)
        if is_remote(output):
            upload(target, output)
    return ShardResult(
        shard=shard.name,
        documents=documents,
        links=links,
        images=dict(sorted(images.items())),
        problems=problems.count,
    )


def features_of_shard(shard: Shard, backbone: Backbone, work: FeaturesWork) -> ShardResult:
    """Compute the features of one shard's images into a feature store of its own."""
    from sightline.extraction import extract_features

    problems = Problems(strict=work.strict)
    target = joined(shard.output, shard.name)
    with ExitStack() as stack:
        corpus = _opened(shard, None, problems, stack, unpack=True)
        folder = Path(target)
        if is_remote(target):
            folder = stack.enter_context(scratch_folder()) / "features"
        folder.parent.mkdir(parents=True, exist_ok=True)
        summary = extract_features(
            [corpus], folder, backbone, workers=1, batch=work.batch, problems=problems
        )
        # Images that cannot be read are problems too, but of the image, and have a status.
        if problems.cut is not None:
            raise SightlineError(str(problems.cut))
        if is_remote(target):
            # The ids come last: without them a store does not open.
            for file in sorted(folder.iterdir(), key=lambda file: file.name == "id2row.json"):
                if not file.name.startswith("."):
                    upload(file, joined(target, file.name))
    failed = {str(status): count for status, count in summary.failed.items()}
    images = dict(sorted(({"ok": summary.usable} | failed).items()))
    return ShardResult(shard=shard.name, images=images, problems=problems.count)


def model_hash(place: str) -> str:
    """Names the content of a model folder."""
    digest = hashlib.sha256()
    with _model_folder(place) as folder:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
                with file.open("rb") as content:
                    digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _key(work: Any) -> str:
    return hashlib.sha256(orjson.dumps(asdict(work), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _opened(
    shard: Shard, split: str | None, problems: Problems, stack: ExitStack, *, unpack: bool
) -> Corpus:
    """The documents of a shard; the images of a tar file are unpacked to a scratch folder."""
    path = stack.enter_context(local_copy(shard.source))
    corpus = read(path, split=split, problems=problems, allow_empty=True)
    if not unpack or path.suffix != ".tar":
        return corpus
    from sightline.conversion import convert

    folder = stack.enter_context(scratch_folder())
    convert(corpus, folder / "documents.jsonl", "native")
    return read(folder, problems=problems, allow_empty=True)


def _features_of(shard: Shard, features: str | None, stack: ExitStack) -> Path | None:
    """The feature store of a shard: its own in a folder of stores, or the one for all."""
    if features is None:
        return None
    own = joined(features, shard.name)
    if not is_remote(features) and not is_folder(own) and not any(Path(features).glob("*.npy")):
        raise SightlineError(f"{features} holds no feature store {shard.name} for this shard.")
    return stack.enter_context(local_copy(own if is_folder(own) else features))


def _refuse_damage(problems: Problems, documents: int) -> None:
    """A shard of which a part is lost is not done."""
    if problems.cut is not None:
        raise SightlineError(str(problems.cut))
    if problems.count and not documents:
        raise SightlineError(f"{problems.first[0]} (and no document could be read)")


@contextmanager
def _model_folder(place: str) -> Iterator[Path]:
    if not is_remote(place):
        yield _folder_of(place)
        return
    with local_copy(place) as folder:
        yield folder


def _folder_of(place: str) -> Path:
    """The folder of a model; `default` is a name, which every machine has its own folder for."""
    return BUNDLED if place == "default" else Path(place)
