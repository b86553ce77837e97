"""What the shell offers where an option takes names; where none of them fits, it offers files."""

from __future__ import annotations

from pathlib import Path

from sightline.choices import BASELINES, SPLITS


def models(incomplete: str) -> list[str]:
    """The bundled model, and the model folders here."""
    return _starting(["default", *_model_folders()], incomplete)


def scored_models(incomplete: str) -> list[str]:
    """What `evaluate` scores: models and the paper's baselines."""
    return _starting(["default", *BASELINES, *_model_folders()], incomplete)


def backbones(incomplete: str) -> list[str]:
    """The image networks that have a name."""
    from sightline.backbone_names import NAMES

    return _starting(NAMES, incomplete)


def splits(incomplete: str) -> list[str]:
    """The usual splits, and every document; a corpus may have others."""
    return _starting([*SPLITS, "all"], incomplete)


def new_splits(incomplete: str) -> list[str]:
    """The usual splits, where documents get theirs."""
    return _starting(SPLITS, incomplete)


def link_limits(incomplete: str) -> list[str]:
    """What `--max-links` takes besides numbers."""
    return _starting(["all", "half"], incomplete)


def row_groups(incomplete: str) -> list[str]:
    """What `reproduce --rows` takes besides names of rows."""
    return _starting(["main", "all"], incomplete)


def _model_folders() -> list[str]:
    return sorted(str(file.parent) for file in Path().glob("*/model.safetensors"))


def _starting(names: list[str] | tuple[str, ...], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
