"""Draw and tabulate how often links are right at each confidence: docs/confidence.md's figures.

    python scripts/reliability.py DATA/coco:test DATA/openstax:val --model default \
        -o docs/reliability.svg

Each CORPUS is a path and a split, with true links. A line of the diagram joins the bins of one
corpus, for the default policy; its points are as large as they have links. On standard output
comes a table in Markdown with a row per corpus and policy. `--calibrate CORPUS` estimates the
calibration anew from that corpus instead of taking the model's own; given `each`, from the same
documents that are judged, whose links it does not look at.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from sightline.calibration import calibrate, calibrated
from sightline.choices import Policy
from sightline.confidence import with_confidence
from sightline.corpus import Corpus, read
from sightline.documents import Document
from sightline.files import write_atomically
from sightline.image_features import groups
from sightline.link_records import open_images
from sightline.linking import Link, link
from sightline.model import LinkModel
from sightline.reliability import Reliability

POLICIES: tuple[Policy, ...] = ("assignment", "dense", "top-k", "threshold", "mmc4")
LEAST = (0.5, 0.8, 0.9)
Judged = list[tuple[Link, bool]]


def main() -> None:
    """Parse the command line and work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpora", nargs="+", metavar="CORPUS:SPLIT")
    parser.add_argument("--model", default="default", help="A calibrated model.")
    parser.add_argument(
        "--calibrate", metavar="CORPUS:SPLIT", help="Calibrate on these, or `each`."
    )
    parser.add_argument("-o", "--output", type=Path, help="The diagram, as SVG.")
    arguments = parser.parse_args()
    model = LinkModel.from_pretrained(arguments.model)
    lines: dict[str, Reliability] = {}
    header = ["documents", "policy", "links", "right", "mean confidence", "calibration error"]
    header += [f"right of those from {least} on" for least in LEAST]
    print(f"| {' | '.join(header)} |\n|---|---|{'---:|' * (len(header) - 2)}")
    for name in arguments.corpora:
        corpus, split = opened(name)
        if arguments.calibrate:
            source, its_split = opened(
                name if arguments.calibrate == "each" else arguments.calibrate
            )
            model = calibrated(model, calibrate(model, source, its_split))
        for policy, judged in judge(model, corpus, split).items():
            reliability = of(judged)
            print(row(f"{corpus.path.name} {split}", policy, judged, reliability), flush=True)
            if policy == "assignment":
                lines[f"{corpus.path.name} {split}"] = reliability
    if arguments.output:
        write_atomically(arguments.output, diagram(lines))


def opened(name: str) -> tuple[Corpus, str]:
    """The corpus and the split that PATH:SPLIT names."""
    path, _, split = name.rpartition(":")
    if not path:
        raise SystemExit(f"{name}: expected a path, a colon and a split, as in data/coco:test")
    return read(path), split


def judge(model: LinkModel, corpus: Corpus, split: str) -> dict[Policy, Judged]:
    """Every link of the documents whose true links are known, and whether it is right."""
    if model.calibration is None:
        raise SystemExit("The model is not calibrated; see --calibrate.")
    images = open_images(model, corpus)
    judged: dict[Policy, Judged] = {policy: [] for policy in POLICIES}
    known = (document for document in corpus.documents(split) if document.links is not None)
    for group in groups(known, 256):
        for document, similarity_SV in zip(group, matrices(model, group, images), strict=True):
            true = set(document.links or ())
            for policy in POLICIES:
                found = link(similarity_SV, policy, threshold=0.3)
                for one in with_confidence(found, similarity_SV, model.calibration):
                    judged[policy].append((one, (one.sentence, one.image) in true))
    return judged


def matrices(model: LinkModel, group: list[Document], images: object) -> list[np.ndarray]:
    """Similarity matrices; a document with an image that cannot be used is an error here."""
    _, features = images.read(group)  # type: ignore[attr-defined]
    return list(model.similarity_matrices(group, features))


def of(judged: Iterable[tuple[Link, bool]]) -> Reliability:
    """The counts by confidence, of links of many documents."""
    links = [replace(one, sentence=0, image=int(not right)) for one, right in judged]
    return Reliability.of_links(links, [(0, 0)])


def row(name: str, policy: str, judged: Judged, reliability: Reliability) -> str:
    """A row of the table, in percent."""
    confidence = np.array([one.confidence for one, _ in judged])
    right = np.array([right for _, right in judged])
    error = reliability.expected_calibration_error or 0.0
    cells = [name, policy, f"{len(right):,}"]
    cells += [f"{100 * value:.1f}" for value in (right.mean(), confidence.mean(), error)]
    for least in LEAST:
        kept = right[confidence >= least]
        cells.append(f"{100 * kept.mean():.0f} of {len(kept):,}" if len(kept) else "none")
    return f"| {' | '.join(cells)} |"


def diagram(lines: dict[str, Reliability]) -> bytes:
    """The reliability diagram as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "sightline"  # the same bytes each time
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.2, 5.0), layout="constrained")
    axes.plot([0, 1], [0, 1], color="#b8b2a7", linewidth=1, zorder=0)
    for name, one in lines.items():
        some = one.links >= 10  # fewer links say nothing
        x, y = one.confidence[some] / one.links[some], one.right[some] / one.links[some]
        error = 100 * (one.expected_calibration_error or 0.0)
        (line,) = axes.plot(x, y, linewidth=1.5, label=f"{name} (error {error:.1f} points)")
        sizes = 12 + 160 * one.links[some] / one.links.sum()
        axes.scatter(x, y, sizes, color=line.get_color(), alpha=0.75)
    axes.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence", ylabel="share of right links"
    )
    axes.legend(loc="upper left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    data = io.BytesIO()
    figure.savefig(data, format="svg", metadata={"Date": None})
    return data.getvalue()


if __name__ == "__main__":
    main()
