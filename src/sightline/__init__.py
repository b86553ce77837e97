"""Sightline finds which sentence each image of a document belongs to.

The public names are loaded when they are first used, so that `import sightline` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sightline.corpus import Corpus, read
    from sightline.documents import Document
    from sightline.evaluation import evaluate
    from sightline.features import FeatureStore
    from sightline.linking import Link
    from sightline.model import LinkModel
    from sightline.problems import SightlineError

__version__ = "0.1.0"

__all__ = [
    "Corpus",
    "Document",
    "FeatureStore",
    "Link",
    "LinkModel",
    "SightlineError",
    "evaluate",
    "read",
]

_MODULES = {
    "Corpus": "corpus",
    "Document": "documents",
    "FeatureStore": "features",
    "Link": "linking",
    "LinkModel": "model",
    "SightlineError": "problems",
    "evaluate": "evaluation",
    "read": "corpus",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sightline' has no attribute {name!r}")
    return getattr(import_module(f"sightline.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
