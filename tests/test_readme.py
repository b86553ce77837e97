"""Every command and code block of the README runs, on the bundled corpus."""

import re
import shlex
from pathlib import Path

import pytest
from PIL import Image
from test_cli import sightline

from sightline.documents import Document
from sightline.readers.native import write_jsonl

README = (Path(__file__).parents[1] / "README.md").read_text()
DEMO = Path(__file__).parents[1] / "src" / "sightline" / "data" / "demo"
#: Options that make the README's training runs short; the last of an option's values counts.
SHORT = ["--epochs", "1", "--dimension", "8", "--hidden", "8", "--negative-documents", "5"]


def blocks(language):
    fences = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return [block for name, block in fences if name == language]


def commands():
    for block in blocks(""):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("sightline "):
                yield shlex.split(line, comments=True)[1:]


@pytest.fixture(scope="module")
def names(tmp_path_factory, textbooks):
    folder = tmp_path_factory.mktemp("readme")
    (folder / "images").mkdir()
    for colour in ("teal", "gold"):
        Image.new("RGB", (300, 200), colour).save(folder / "images" / f"{colour}.jpg")
    documents = [
        Document(
            str(number),
            ("The wall is teal.", "The ring is gold."),
            ("images/teal.jpg", "images/gold.jpg"),
            split=("train", "val")[number % 2],
        )
        for number in range(12)
    ]
    write_jsonl(documents, folder / "documents.jsonl")
    return {
        "CORPUS": textbooks,
        "MODEL": folder / "model",
        "IMAGES": folder / "images",
        "FEATURES": folder / "features",
        "glove.txt.gz": textbooks / "word_vectors.npz",
        "links.jsonl": folder / "links.jsonl",
        "article.html": DEMO / "threats-to-biodiversity.html",
        "article.links.html": folder / "article.links.html",
        "sightline-demo": folder / "sightline-demo",
    }


def test_commands(names):
    seen = []
    for number, command in enumerate(commands()):
        arguments = [names.get(word, word) for word in command]
        if command[0] == "train":
            # Each training command into a folder of its own; the first is the one used after.
            target = names["MODEL"]
            target = target.with_name(f"m{number}") if target.exists() else target
            arguments[arguments.index("-o") + 1] = target
            arguments += SHORT
        if "--finetune-images" in command:  # which needs the image files
            arguments[arguments.index(names["CORPUS"])] = names["IMAGES"].parent
        sightline(*arguments)
        seen.append(command[0])
    assert seen == [
        "demo",
        "link",
        "alt",
        "features",
        "train",
        "evaluate",
        "link",
        "train",
        "train",
    ]
    assert "<html" in names["article.links.html"].read_text()
    assert names["links.jsonl"].read_bytes().count(b"\n") == 1115


def test_python(names, capsys):
    (code,) = blocks("python")
    code = code.replace('"CORPUS"', repr(str(names["CORPUS"])))
    exec(code, {})  # the README's own lines
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 100
    assert "'auc'" in printed[-1]


def test_it_is_short():
    assert len(README.splitlines()) < 200


def test_the_file_tree_names_every_module():
    tree = next(block for block in blocks("") if block.startswith("src/sightline/"))
    source = Path(__file__).parents[1] / "src" / "sightline"
    modules = {file.name for file in source.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert len(modules) > 20
    assert not {module for module in modules if module not in tree}
