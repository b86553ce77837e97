"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.choices import BASELINES, LINK_SUFFIXES, Policy, Unit
from sightline.commands import completions
from sightline.commands.values import UsageSentence
from sightline.console import max_links_from, say
from sightline.problems import SightlineError, UsageError, did_you_mean

if TYPE_CHECKING:
    from sightline.linking import LinkChoices
    from sightline.settings import Settings

# Panels of `--help`, for commands with many options.
INPUT = "What is read"
OUTPUT = "What is written"
LINKS = "Which links are chosen"
SPLITS = "Splits"
WORK = "How the work is done"


def known_model(name: str) -> str:
    """A model's name as it is, unless it is a slip of the pen for `default`."""
    return _unless_meant(name, ("default",))


def known_scored_model(name: str) -> str:
    """The same for what `evaluate` scores, which may be one of the paper's baselines."""
    return _unless_meant(name, ("default", *BASELINES))


def _unless_meant(name: str, names: tuple[str, ...]) -> str:
    # Other names are folders, or addresses in a store: who opens them says what is wrong.
    if name not in names and not Path(name).exists() and (hint := did_you_mean(name, names)):
        raise UsageSentence(f"There is no model {name!r}.{hint}")
    return name


def known_backbone(name: str) -> str:
    """A backbone's name, or a folder; anything else is refused with what was probably meant."""
    from sightline.backbone_names import NAMES

    if name in NAMES or Path(name).is_dir():
        return name
    raise UsageSentence(
        f"There is no backbone {name!r}; known are {', '.join(NAMES)} and CLIP or SigLIP folders."
        f"{did_you_mean(name, NAMES)}"
    )


def _corpus(path: Path) -> Path:
    """A path that is there, or has no name close to it; then who reads it says what it expects."""
    if not path.exists() and (hint := _names_beside(path)):
        raise SightlineError(f"{path}: no such file or folder.{hint}")
    return path


def existing(paths: list[Path]) -> list[Path]:
    """Paths that are there, or addresses in a store."""
    from sightline.storage import is_remote, place_of

    for path in paths:
        place = place_of(path)
        if not is_remote(place) and not Path(place).exists():
            hint = _names_beside(path)
            where = "" if path.is_absolute() else f" in {Path.cwd()}"
            if str(path) == "-":
                raise UsageError("Standard input is not read; name a file.")
            raise SightlineError(f"{path}: no such file or folder{where}.{hint}")
    return paths


def _documents(paths: list[Path]) -> list[Path]:
    """The same for what is linked; the last of several may be meant as the file to write."""
    try:
        return existing(paths)
    except SightlineError as error:
        *others, last = paths
        if last.suffix in LINK_SUFFIXES and others and all(map(Path.exists, others)):
            raise SightlineError(f"{error} To write to it: -o {last}.") from None
        raise


def settings_of(**options: Any) -> Settings:
    """Settings by their options; of a value that does not fit, the option is named."""
    from sightline.settings import Settings

    try:
        return Settings(**options)
    except SightlineError as error:
        name, _, rest = str(error).partition(" ")
        raise UsageError(f"--{name.replace('_', '-')} {rest}") from None


def file_to_write(path: Path | None) -> Path | None:
    """A place for a file, looked at before the work that is to be written there."""
    from sightline.files import check_place

    if path is not None:
        check_place(path)
    return path


def page_places(
    output: Path | None,
    form: str,
    articles: list[Path],
    folders: list[Path],
    *,
    is_folder: bool,
    others: int = 0,
    ending: str = "links",
) -> dict[Path, Path]:
    """Where the pages of articles go, if pages are written; looked at before the work."""
    from sightline.link_writing import page_files

    if form != "html":
        file_to_write(output)
        return {}
    if output is not None and is_folder and not (others or output.exists()):
        output.mkdir(parents=True)
    pages = page_files(output, articles, others, ending, folders)
    if output in pages.values():
        file_to_write(output)
    return pages


def _names_beside(path: Path) -> str:
    """What was probably meant by the name of a file that does not exist."""
    try:
        return did_you_mean(path.name, (one.name for one in path.parent.iterdir()))
    except OSError:
        return ""


CorpusArgument = Annotated[
    Path,
    typer.Argument(help="A .jsonl, .parquet or .tar file, or a folder.", callback=_corpus),
]
DocumentsArgument = Annotated[
    list[Path],
    typer.Argument(
        help="Articles (HTML, Markdown, PDF, DOCX, EPUB), folders of them, or corpora.",
        metavar="INPUT",
        callback=_documents,
    ),
]
CorpusFolderOption = Annotated[
    Path, typer.Option("--output", "-o", help="Corpus folder to write.", rich_help_panel=OUTPUT)
]
FeaturesOption = Annotated[
    Path | None,
    typer.Option(
        "--features",
        help="Feature store; by default the corpus's own.",
        rich_help_panel=INPUT,
    ),
]
FetchOption = Annotated[
    bool, typer.Option("--fetch", help="Fetch remote images of articles.", rich_help_panel=INPUT)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
MaxLinksOption = Annotated[
    str,
    typer.Option(
        help="all, half or a number of links.",
        autocompletion=completions.link_limits,
        rich_help_panel=LINKS,
    ),
]
MinConfidenceOption = Annotated[
    float,
    typer.Option(
        min=0.0, max=1.0, help="Leave out links that are less sure.", rich_help_panel=LINKS
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        help="A model folder, a CLIP or SigLIP folder, `default` or hf://owner/name.",
        autocompletion=completions.models,
        callback=known_model,
        rich_help_panel=LINKS,
    ),
]
PolicyOption = Annotated[Policy, typer.Option(help="How links are chosen.", rich_help_panel=LINKS)]
SeedOption = Annotated[int, typer.Option(help="Same seed, same corpus.", rich_help_panel=SPLITS)]
SplitOption = Annotated[
    str | None,
    typer.Option(
        help="Only these documents of a corpus.",
        autocompletion=completions.splits,
        rich_help_panel=INPUT,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Stop at the first bad record.", rich_help_panel=INPUT),
]
TestOption = Annotated[
    float,
    typer.Option(help="Test documents: a share, or a number from 1 on.", rich_help_panel=SPLITS),
]
ThresholdOption = Annotated[
    float,
    typer.Option(
        min=-1.0,
        max=1.0,
        help="Of the policy threshold: similarity above it.",
        rich_help_panel=LINKS,
    ),
]
UnitOption = Annotated[Unit, typer.Option(help="What one sentence is.", rich_help_panel=INPUT)]
ValidationOption = Annotated[
    float,
    typer.Option(
        help="Validation documents: a share, or a number from 1 on.", rich_help_panel=SPLITS
    ),
]
WordVectorsOption = Annotated[
    Path | None,
    typer.Option(help="word2vec or GloVe file (.bin, .txt, .gz, .npz).", rich_help_panel=INPUT),
]


def link_choices(
    policy: Policy, max_links: str, threshold: float, min_confidence: float = 0.0
) -> LinkChoices:
    """How links are chosen, as the options say it."""
    from sightline.linking import LinkChoices

    if threshold and policy != "threshold":
        say(f"--threshold is for --policy threshold, and has no effect with --policy {policy}.")
    return LinkChoices(policy, max_links_from(max_links), threshold, min_confidence)
