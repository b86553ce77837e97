"""The model that comes with the package: small, whole, without torch, and good."""

import subprocess
import sys

import pytest

from sightline import LinkModel, evaluate, read
from sightline.model import BUNDLED


@pytest.fixture(scope="module")
def model():
    return LinkModel.from_pretrained("default")


def test_it_takes_at_most_25_megabytes():
    assert sum(file.stat().st_size for file in BUNDLED.rglob("*") if file.is_file()) <= 25_000_000


def test_it_links_without_torch():
    program = (
        "import sys, numpy as np; from sightline import Document, LinkModel\n"
        "model = LinkModel.from_pretrained('default')\n"
        "document = Document('d', ('A dog runs.', 'A red bus stops.'), ('a',))\n"
        "links = model.link(document, features=np.ones((1, 1280), np.float32))\n"
        "assert 0 <= links[0].confidence <= 1\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_word_that_it_never_saw_is_read_by_its_parts(model):
    known, unseen, other = model.encode_sentences(
        ["two snowboarders", "two snowboarder's", "a plate of spaghetti"]
    )
    assert known @ unseen > 0.7 > known @ other + 0.2


def test_it_beats_chance_on_captions_of_textbooks(model, textbooks):
    scores = evaluate(model, read(textbooks), split="test")
    assert scores["auc"] > 65


@pytest.mark.parametrize(("corpus", "auc"), [("coco", 98.5), ("openstax", 65), ("guides", 59)])
def test_it_scores_as_its_card_says(model, shared_data, corpus, auc):
    scores = evaluate(model, read(shared_data / corpus), split="val")
    assert scores["auc"] > auc
    card = model.notes["scores"][f"{corpus} val"]
    assert scores["auc"] == pytest.approx(card["auc"], abs=0.05)
