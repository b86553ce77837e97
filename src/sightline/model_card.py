"""The model card: the README.md of a model folder, with the header that the Hugging Face hub reads.

The header is YAML: what library loads the model, and its scores as `model-index`. It names no
licence unless the notes do: a model's licence is its maker's to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from sightline.settings import Settings

_TAGS = ("sightline", "image-text-alignment", "multimodal", "unsupervised")
_TASK = {"type": "image-sentence-linking", "name": "Linking images and sentences of documents"}
_PREFIX = "validation_"  # of the scores that training notes
#: Our scores and what the hub calls such a metric.
_METRICS = {"auc": "roc_auc", "p@1": "precision", "p@5": "precision"}


def model_card(
    settings: Settings, words: int, backbone: str | None, notes: Mapping[str, Any]
) -> str:
    """The card of a model of so many words; `notes` are what `config.json` says of its training."""
    scores = dict(_scores(notes))
    rows = [
        [split, *(_cell(values.get(name)) for name in ("documents", *_METRICS))]
        for split, values in scores.items()
    ]
    heads = [["documents", "how many", "AUC", "p@1", "p@5"], ["---", *["---:"] * 4]]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in [*heads, *rows])
    chosen = "\n".join(f"- {key}: {value}" for key, value in settings.to_json().items())
    return (
        f"{card_header(notes)}"
        "# A Sightline model\n\n"
        "Finds which sentence each image of a document belongs to. Trained without labelled\n"
        "pairs by the method of Hessel, Lee and Mimno (EMNLP 2019).\n\n"
        "```python\nimport sightline\n\n"
        'model = sightline.LinkModel.from_pretrained("THIS FOLDER OR owner/name")\n```\n\n'
        f"- image features: {_plain(backbone or 'not recorded')}\n"
        f"- words: {words:,}\n"
        f"- trained on: {_corpus(notes)}\n\n"
        "## Scores\n\nIn percent, means over documents.\n\n"
        f"{table if scores else 'None recorded.'}\n\n## Settings\n\n{chosen}\n"
    )


def card_header(notes: Mapping[str, Any]) -> str:
    """The YAML at the head of a card."""
    # JSON is YAML, too, and escapes whatever a name holds.
    lines = ["---", "library_name: sightline"]
    if notes.get("license"):
        lines.append(f"license: {_json(_plain(notes['license']))}")
    lines += ["tags:", *(f"- {tag}" for tag in _TAGS)]
    results = list(_results(notes))
    if results:
        lines += ["model-index:", "- name: sightline", "  results:", *results]
    return "\n".join([*lines, "---", "", ""])


def _results(notes: Mapping[str, Any]) -> Iterator[str]:
    """The scores as lines of `model-index`."""
    corpus = _corpus(notes)
    for split, values in _scores(notes):
        yield f"  - task: {_json(_TASK)}"
        dataset = {"type": corpus, "name": f"{corpus}: {split}", "split": split}
        yield f"    dataset: {_json(dataset)}"
        yield "    metrics:"
        for name, kind in _METRICS.items():
            if name in values:
                value = round(values[name], 2)
                yield f"    - {_json({'type': kind, 'value': value, 'name': f'{name} in percent'})}"


def _corpus(notes: Mapping[str, Any]) -> str:
    return _plain(notes.get("corpus") or "not recorded")


def _scores(notes: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """The scores that were measured, by what they were measured on."""
    recorded = notes.get("scores")
    for split, values in recorded.items() if isinstance(recorded, dict) else ():
        if not isinstance(values, dict):
            continue
        known = {
            name.removeprefix(_PREFIX): value
            for name, value in values.items()
            if isinstance(value, int | float)
        }
        if "auc" in known:
            yield _plain(split), known


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _plain(text: object) -> str:
    """A name on one line, without what Markdown tables and YAML stumble over."""
    kept = (letter if letter.isprintable() and letter != "|" else " " for letter in str(text))
    return " ".join("".join(kept).split())[:200]
