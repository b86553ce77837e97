"""Train the model that comes with the package, from the folder that holds its data.

    python scripts/train_default_model.py DATA -o out/default

DATA holds the corpora `coco`, `openstax` and `guides` and `word_vectors/glove.840B.300d.npz`.
Their training documents become one corpus, in which each document says where it comes from;
negatives are drawn from the same source. The small organic corpora are repeated, since their
documents are cut to other parts each time. The model that is best on the validation documents is
calibrated on them, scored on every split that has ground truth, and written in its small form
with its model card. `--resume` continues a run that was cut off.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sightline import LinkModel, evaluate, read
from sightline.backbones import DEFAULT
from sightline.documents import Document
from sightline.features import FeatureStore, write_feature_store
from sightline.readers.native import write_jsonl
from sightline.settings import Settings
from sightline.training import train

#: How often the training documents of a corpus come in an epoch.
REPEATS = {"coco": 1, "openstax": 5, "guides": 8}
WORD_VECTORS = "word_vectors/glove.840B.300d.npz"
SETTINGS = Settings(
    sentence_encoder="attention",
    layers=2,
    hidden=512,
    dimension=256,
    token_limit=50,
    minimum_count=40,
    fixed_word_vectors=True,
    class_words=True,
    similarity="DC",
    loss="softmax",
    negative_documents=63,
    negatives_within="corpus",
    word_dropout=0.1,
    document_cut=20,
    dropout=0.3,
    learning_rate=0.001,
    schedule="cosine",
    epochs=6,
)


def main() -> None:
    """Parse the command line and work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("-o", "--output", type=Path, required=True, help="Model folder.")
    parser.add_argument("--work", type=Path, help="Where the run is kept; OUTPUT-run by default.")
    parser.add_argument("--epochs", type=int, default=SETTINGS.epochs)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    work = arguments.work or arguments.output.with_name(arguments.output.name + "-run")
    corpus = work / "corpus"
    if not corpus.exists():
        mix(arguments.data, corpus)
    train(
        read(corpus),
        work / "model",
        replace(SETTINGS, epochs=arguments.epochs),
        word_vectors=arguments.data / WORD_VECTORS,
        resume=arguments.resume,
        say=print,
    )
    finish(work / "model", arguments.data, arguments.output)


def mix(data: Path, output: Path) -> None:
    """Write the corpora's training and validation documents and their features as one corpus."""
    names: list[str] = []
    matrices = []
    manifest: dict[str, Any] | None = None
    for corpus in REPEATS:
        store = FeatureStore.open(data / corpus / "features")
        manifest = manifest or store.manifest
        by_row = sorted(store.id2row.items(), key=lambda item: item[1])
        names += [f"{corpus}-{name}" for name, _ in by_row]
        matrices.append(store.vectors([row for _, row in by_row]).astype(np.float16))
    folder = output.with_suffix(".part")
    folder.mkdir(parents=True, exist_ok=True)
    features = folder / "features"
    write_feature_store(features, DEFAULT, names, np.concatenate(matrices), manifest or {})
    count = write_jsonl(mixed_documents(data), folder / "documents.jsonl")
    folder.rename(output)
    print(f"{count:,} documents in {output}")


def mixed_documents(data: Path) -> Iterator[Document]:
    """The documents of all corpora, with names of images and documents that do not clash."""
    for corpus, repeats in REPEATS.items():
        for split, times in (("train", repeats), ("val", 1)):
            for document in read(data / corpus, split=split):
                ids = map(FeatureStore.image_id, document.images)
                images = tuple(f"{corpus}-{name}.jpg" for name in ids)
                for time in range(times):
                    yield Document(
                        f"{corpus}-{document.id}-{time}",
                        document.sentences,
                        images,
                        document.links,
                        split,
                        {"corpus": corpus},
                    )


def finish(run: Path, data: Path, output: Path) -> None:
    """Write the model in its small form, and score that."""
    trained = LinkModel.from_pretrained(run)
    trained.save_pretrained(output, small=True)
    model = LinkModel.from_pretrained(output)
    scores = {
        f"{corpus} {split}": evaluate(model, read(data / corpus), split=split)
        for corpus, splits in {
            "coco": ("val", "test"),
            "openstax": ("val",),
            "guides": ("val",),
        }.items()
        for split in splits
    }
    notes = {"corpus": ", ".join(REPEATS), "scores": scores, **_versions(trained)}
    replace(trained, notes=notes).save_pretrained(output, small=True)
    for name, values in scores.items():
        print(name, values)


def _versions(model: LinkModel) -> dict[str, Any]:
    notes = model.notes or {}
    return {key: notes[key] for key in ("best_epoch", "versions", "calibration") if key in notes}


if __name__ == "__main__":
    main()
