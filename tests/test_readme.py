"""Every command and code block of the README runs, on the bundled corpus."""

import shlex

import pytest
from command_server import sightline
from PIL import Image
from shown_commands import ROOT, blocks

from sightline.documents import Document
from sightline.readers.native import write_jsonl

README = (ROOT / "README.md").read_text()
DEMO = ROOT / "src" / "sightline" / "data" / "demo"
#: Options that make the README's training runs short; the last of an option's values counts.
SHORT = ["--epochs", "1", "--dimension", "8", "--hidden", "8", "--negative-documents", "5"]


def shown(language):
    return [block.body for block in blocks(README) if block.language == language]


def commands():
    for block in shown(""):
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
        "CORPUS/features": folder / "features",
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
        if command[0] == "features" or "--finetune-images" in command:  # which need image files
            arguments[arguments.index(names["CORPUS"])] = names["CORPUS/features"].parent
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
    (code,) = shown("python")
    for name in ("CORPUS", "article.html"):
        code = code.replace(f'"{name}"', repr(str(names[name])))
    exec(code, {})  # the README's own lines
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 100
    assert "'auc'" in printed[-1]


def test_it_is_short():
    assert len(README.splitlines()) < 200


def test_the_file_tree_names_every_module():
    tree = next(block for block in shown("") if block.startswith("src/sightline/"))
    source = ROOT / "src" / "sightline"
    modules = {file.name for file in source.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert len(modules) > 20
    assert not {module for module in modules if module not in tree}
