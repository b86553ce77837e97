"""Models by name: in a folder here, or on the Hugging Face hub.

From the hub come only the files that a model folder has, into the hub's own cache; what they hold
is then checked as in any folder, and nothing in them can run.
"""

from __future__ import annotations

import re
from pathlib import Path

from sightline import __version__
from sightline.installed_packages import install_command
from sightline.model_files import ModelError
from sightline.problems import did_you_mean

#: The name of the model that comes with the package.
DEFAULT = "default"
_SCHEME = "hf://"
_ON_HUB = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?", re.ASCII)
_FILES = (
    "config.json",
    "model.safetensors",
    "vocabulary.json",
    "README.md",
    "backbone-*.onnx",
    "backbone-*.safetensors",
)
#: What is fetched of a repository; weights in other forms, such as pickles, stay there.
PATTERNS = [*_FILES, *(f"member-*/{name}" for name in _FILES)]


def model_folder(name_or_folder: str | Path, revision: str | None = None) -> Path:
    """Where the files of a model lie; one of the hub is fetched unless it was before.

    A folder that is there comes first. `owner/name` is a model of the hub, and so is
    `hf://owner/name`; a branch, tag or commit follows after `@`, or is given as `revision`.
    A `Path` is always a folder.
    """
    folder = Path(name_or_folder)
    found = None
    if isinstance(name_or_folder, str) and not folder.is_dir():
        found = _ON_HUB.fullmatch(name_or_folder.removeprefix(_SCHEME))
        if found is None and name_or_folder.startswith(_SCHEME):
            raise ModelError(f"{name_or_folder} is not a model's name; expected hf://owner/name.")
    name = str(folder)
    hint = did_you_mean(name, [DEFAULT])
    if hint and name != DEFAULT and not folder.exists():
        raise ModelError(f"There is no model {name!r}.{hint}")
    if found is not None:
        return _fetched(found[1], revision or found[2])
    if revision is not None:
        raise ModelError(
            f"{folder}: a folder has no revision; only a model of the Hugging Face hub has."
        )
    return folder


def name_from_user(name: str | Path) -> str | Path:
    """A name out of a command or a configuration: no mistyped folder is looked for on the hub.

    Nothing is fetched unless the name says so, by `hf://`.
    """
    return name if str(name) == DEFAULT or str(name).startswith(_SCHEME) else Path(name)


def no_model_folder(folder: Path) -> ModelError:
    """The error for a folder that is not there; its name may be meant as one of the hub."""
    name = folder.as_posix()
    sentence = f"{folder} is not a model folder; train one with 'sightline train CORPUS -o {name}'"
    if _ON_HUB.fullmatch(name):
        sentence += (
            f", or, to fetch it from the Hugging Face hub, write {_SCHEME}{name}; a CLIP or SigLIP "
            f"model is fetched by 'hf download {name} --local-dir DIR', and DIR is its name here"
        )
    return ModelError(f"{sentence}.")


def _fetched(name: str, revision: str | None) -> Path:
    here = f"{name} is not a model folder here"
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise ModelError(
            f"{here}; to load it from the Hugging Face hub, {install_command('hub')}"
        ) from None
    at = f" at {revision}" if revision else ""
    try:
        folder = huggingface_hub.snapshot_download(
            name,
            revision=revision,
            allow_patterns=PATTERNS,
            library_name="sightline",
            library_version=__version__,
        )
    except errors.RevisionNotFoundError:
        raise ModelError(f"{name} on the Hugging Face hub has no revision {revision}.") from None
    except errors.GatedRepoError:
        raise ModelError(
            f"{name} on the Hugging Face hub asks for consent; accept its conditions on its page, "
            "then sign in with 'hf auth login'."
        ) from None
    except errors.RepositoryNotFoundError:
        raise ModelError(
            f"{here}, and the Hugging Face hub has none of this name that you may read; check the "
            "name, or sign in with 'hf auth login' if it is private."
        ) from None
    except errors.LocalEntryNotFoundError:
        raise ModelError(
            f"{here}, and the Hugging Face hub cannot be reached; {name}{at} was never fetched."
        ) from None
    except Exception as error:  # of whichever network library lies below
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ModelError(
            f"{name}{at} cannot be fetched from the Hugging Face hub: {reason}."
        ) from error
    return Path(folder)
