"""`sightline build`: one command for each of the paper's datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.commands import build_pages
from sightline.commands.manners import Command, CommandGroup, examples
from sightline.commands.options import (
    INPUT,
    SPLITS,
    CorpusFolderOption,
    JsonOption,
    SeedOption,
    StrictOption,
    TestOption,
    ValidationOption,
)
from sightline.console import print_json, report, say, say_problems
from sightline.problems import Problems

if TYPE_CHECKING:
    from sightline.documents import Document

build = typer.Typer(
    name="build",
    cls=CommandGroup,
    help="Build a corpus: one of the paper's, or of your own pages.\n\n"
    "The paper's are made from the datasets as they are published.",
    epilog=examples(
        (
            "A corpus of your own web pages",
            "sightline build pages site/ -o CORPUS --links-from-layout",
        ),
        (
            "The paper's MSCOCO",
            "sightline build mscoco captions_train2014.json -o CORPUS --images train2014/",
        ),
    ),
    add_completion=False,
    no_args_is_help=True,
)

_ImagesOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the image files: what is missing there is dropped.", rich_help_panel=INPUT
    ),
]
_VistArgument = Annotated[
    Path, typer.Argument(help="Folder with VIST's annotation files.", metavar="FOLDER")
]
#: A reader that was told all but its `images`, `problems` and `dropped`.
_Builder = Callable[..., Iterator["Document"]]


def _examples(files: str) -> str:
    command = f"sightline build {files} -o CORPUS"
    return examples(
        ("With the images that are here", f"{command} --images images/"),
        ("Without looking for images", command),
    )


@build.command(cls=Command, epilog=_examples("mscoco captions_train2014.json"))
def mscoco(
    annotations: Annotated[
        list[Path],
        typer.Argument(help="COCO caption files, such as captions_train2014.json."),
    ],
    output: CorpusFolderOption,
    validation: ValidationOption = 0.2,
    test: TestOption = 0.2,
    versions: Annotated[
        int, typer.Option(min=1, help="Versions of a training document, by other captions.")
    ] = 5,
    images: _ImagesOption = None,
    seed: SeedOption = 1,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """5 captioned images, 5 images and 5 captions of others; 5 links of 100."""
    from sightline.readers.mscoco import read_mscoco

    options = {"seed": seed, "validation": validation, "test": test, "versions": versions}
    builder = partial(read_mscoco, annotations)
    _write("mscoco", builder, options, output, annotations, images, strict, json)


@build.command(cls=Command, epilog=_examples("dii vist/"))
def dii(
    folder: _VistArgument,
    output: CorpusFolderOption,
    images: _ImagesOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """VIST's descriptions in isolation: 5 images of an album, each with its caption."""
    from sightline.readers.vist import DII, read_vist, vist_files

    builder = partial(read_vist, folder, DII)
    _write("dii", builder, {}, output, vist_files(folder, DII), images, strict, json)


@build.command(cls=Command, epilog=_examples("sis vist/"))
def sis(
    folder: _VistArgument,
    output: CorpusFolderOption,
    images: _ImagesOption = None,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """VIST's stories in sequence: 5 images of an album and the sentences of a story."""
    from sightline.readers.vist import SIS, read_vist, vist_files

    builder = partial(read_vist, folder, SIS)
    _write("sis", builder, {}, output, vist_files(folder, SIS), images, strict, json)


@build.command("dii-stress", cls=Command, epilog=_examples("dii-stress vist/"))
def dii_stress(
    folder: _VistArgument,
    output: CorpusFolderOption,
    distractors: Annotated[
        int, typer.Option(min=1, help="Captions of other images that are added.")
    ] = 45,
    images: _ImagesOption = None,
    seed: SeedOption = 1,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """DII with 45 captions of other images added to each document: 5 links of 250."""
    from sightline.readers.vist import DII, read_dii_stress, vist_files

    options = {"seed": seed, "distractors": distractors}
    builder = partial(read_dii_stress, folder)
    _write("dii-stress", builder, options, output, vist_files(folder, DII), images, strict, json)


@build.command(cls=Command, epilog=_examples("rqa train.json val.json"))
def rqa(
    train: Annotated[
        Path, typer.Argument(help="RecipeQA's training questions, train.json.", metavar="TRAIN")
    ],
    given_validation: Annotated[
        Path,
        typer.Argument(help="Its validation questions, val.json: the test split.", metavar="VAL"),
    ],
    output: CorpusFolderOption,
    validation: Annotated[
        float,
        typer.Option(
            help="Training recipes reserved: a share, or a number from 1 on.",
            rich_help_panel=SPLITS,
        ),
    ] = 0.127,
    images: _ImagesOption = None,
    seed: SeedOption = 1,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """RecipeQA's recipes: a sentence is a step's title and body, linked to its images."""
    from sightline.readers.recipeqa import read_recipeqa

    options = {"seed": seed, "validation": validation}
    builder = partial(read_recipeqa, train, given_validation)
    _write("rqa", builder, options, output, [train, given_validation], images, strict, json)


@build.command(
    cls=Command,
    epilog=examples(
        (
            "From saved album pages and images",
            "sightline build diy RS_2014-*.zst -o CORPUS --pages albums/ --images images/",
        ),
    ),
)
def diy(
    dumps: Annotated[
        list[Path],
        typer.Argument(help="Dumps of Reddit submissions: JSON lines, or .zst, .bz2, .xz of them."),
    ],
    output: CorpusFolderOption,
    pages: Annotated[
        Path,
        typer.Option(
            help="Folder of saved album pages of imgur, <album id>.html.", rich_help_panel=INPUT
        ),
    ],
    images: Annotated[
        Path,
        typer.Option(help="Folder of the image files, <image id>.jpg.", rich_help_panel=INPUT),
    ],
    # The paper's splits are 6.8K, 1K and 1K documents.
    validation: ValidationOption = 1 / 8.8,
    test: TestOption = 1 / 8.8,
    seed: SeedOption = 1,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Albums posted to Reddit's DIY: the captions, each linked to its image."""
    from sightline.readers.diy import read_diy

    options = {"seed": seed, "validation": validation, "test": test, "pages": pages}
    _write("diy", partial(read_diy, dumps), options, output, dumps, images, strict, json)


@build.command(cls=Command, epilog=_examples("wiki ImageCLEF/"))
def wiki(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder of ImageCLEF's Wikipedia collection, or a JSONL file of articles."
        ),
    ],
    output: CorpusFolderOption,
    language: Annotated[str, typer.Option(help="Language of the collection's articles.")] = "en",
    # The paper's splits are 14K, 1K and 1K documents.
    validation: ValidationOption = 1 / 16,
    test: TestOption = 1 / 16,
    images: _ImagesOption = None,
    seed: SeedOption = 1,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Wikipedia articles of at least 10 sentences and 3 images; the links are unknown."""
    from sightline.readers.wiki import read_wiki

    options = {"seed": seed, "validation": validation, "test": test, "language": language}
    inputs = [source] if source.is_file() else []
    _write("wiki", partial(read_wiki, source), options, output, inputs, images, strict, json)


build.command(cls=Command, epilog=build_pages.EXAMPLES)(build_pages.pages)


def _write(
    name: str,
    builder: _Builder,
    options: dict[str, Any],
    output: Path,
    inputs: Sequence[Path],
    images: Path | None,
    strict: bool,
    json: bool,
) -> None:
    """Build the corpus and show what it looks like, beside the paper's own row."""
    from sightline.building import build_corpus
    from sightline.corpus_statistics import statistics_table
    from sightline.image_folders import ImageFolder
    from sightline.paper import TABLE_1

    problems = Problems(strict=strict, report=report)
    dropped: Counter[str] = Counter()
    folder = None if images is None else ImageFolder.open(images, output)
    said = {**options, "images": images}
    statistics = build_corpus(
        name,
        builder(**options, images=folder, problems=problems, dropped=dropped),
        output,
        inputs=inputs,
        options={key: str(one) if isinstance(one, Path) else one for key, one in said.items()},
        problems=problems,
        dropped=dropped,
    )
    say_problems(problems)
    for what, count in sorted((+dropped).items()):
        say(f"dropped {count:,} {what}")
    if images is None:
        say("images were not looked for; --images FOLDER drops what cannot be had")
    say(f"{statistics.total:,} documents in {output}")
    if json:
        print_json({**statistics.to_record(), "dropped": dict(sorted((+dropped).items()))})
    else:
        typer.echo(statistics_table(name, statistics, TABLE_1[name]))
