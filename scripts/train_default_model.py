"""Train the model that comes with the package, from the folder that holds its data.

    python scripts/train_default_model.py DATA -o out/default

DATA holds the corpora `coco`, `openstax` and `guides` and `word_vectors/glove.840B.300d.npz`.
The model has two members. For the first, whose text side is a mean of word vectors, the training
documents of all three become one corpus, in which each document says where it comes from; negatives
are drawn from the same source. The small organic corpora are repeated, since their documents are
cut to other parts each time. The second is the paper's GRU, trained on COCO alone: it knows the
order of words, but not those of other texts. The model is calibrated on the validation documents,
scored on every split that has ground truth, and written in its small form with its model card.
A run that was cut off continues when the command is repeated.
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
from sightline.calibration import calibrate, calibrated
from sightline.documents import Document
from sightline.features import FeatureStore, write_feature_store
from sightline.files import write_atomically
from sightline.model import Member
from sightline.model_card import card_header
from sightline.readers.native import write_jsonl
from sightline.settings import Settings
from sightline.training import train

#: How often the training documents of a corpus come in an epoch.
REPEATS = {"coco": 1, "openstax": 3, "guides": 4}
WORD_VECTORS = "word_vectors/glove.840B.300d.npz"
#: What has ground truth; the test documents of COCO have no other use.
SCORED = (("coco", "val"), ("coco", "test"), ("openstax", "val"), ("guides", "val"))
#: The GRU's share of the score, chosen on the validation documents of all three corpora.
GRU_SHARE = 0.34
GRU_SETTINGS = Settings(similarity="DC", dimension=256, learning_rate=0.0005, epochs=6)
SETTINGS = Settings(
    sentence_encoder="attention",
    layers=1,
    dimension=1024,
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
    dropout=0.2,
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
    arguments = parser.parse_args()
    work = arguments.work or arguments.output.with_name(arguments.output.name + "-run")
    corpus = work / "corpus"
    if not corpus.exists():
        mix(arguments.data, corpus)
    vectors = arguments.data / WORD_VECTORS
    for name, source, settings in (
        ("mixed", corpus, SETTINGS),
        ("gru", arguments.data / "coco", GRU_SETTINGS),
    ):
        train(read(source), work / name, settings, word_vectors=vectors, resume=True, say=print)
    finish(work, arguments.data, arguments.output)


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


def finish(work: Path, data: Path, output: Path) -> None:
    """Put the members together, calibrate them, and score what is written."""
    mixed, gru = (LinkModel.from_pretrained(work / name) for name in ("mixed", "gru"))
    model = replace(mixed, notes={}, members=(Member(replace(gru, notes={}), GRU_SHARE),))
    model.save_pretrained(output, small=True)
    model = LinkModel.from_pretrained(output)
    calibration = calibrate(model, read(work / "corpus"), split="val")
    model = calibrated(replace(model, notes={"corpus": ", ".join(REPEATS)}), calibration)
    scores = {
        f"{corpus} {split}": evaluate(model, read(data / corpus), split=split)
        for corpus, split in SCORED
    }
    notes = {**(model.notes or {}), "scores": scores, "versions": (mixed.notes or {})["versions"]}
    replace(model, notes=notes).save_pretrained(output, small=True)
    card = (Path(__file__).parent / "default_model_card.md").read_text(encoding="utf-8")
    lines = [
        f"| {name} | {values['documents']:,} | {values['auc']:.1f} | {values['p@1']:.1f} | "
        f"{values['p@5']:.1f} |"
        for name, values in scores.items()
    ]
    header = card_header({**notes, "license": "apache-2.0"})
    card = header + card.replace("SCORES", "\n".join(lines))
    write_atomically(output / "README.md", card.encode())
    print("\n".join(lines))


if __name__ == "__main__":
    main()
