"""Statistics of a corpus, against plain loops and the paper's Table 1."""

import statistics
import tracemalloc

from counted_corpora import corpus_statistics
from hypothesis import given
from hypothesis import strategies as st

from sightline import corpus_statistics as module
from sightline.corpus_statistics import statistics_table
from sightline.documents import Document
from sightline.paper import TABLE_1


@st.composite
def documents(draw, number=0):
    sentences = draw(st.integers(0, 6))
    images = draw(st.lists(st.sampled_from("abcdefgh"), max_size=6))
    pairs = [(s, v) for s in range(sentences) for v in range(len(images))]
    links = draw(st.none() | st.sets(st.sampled_from(pairs)).map(tuple) if pairs else st.none())
    split = draw(st.sampled_from([None, "train", "val", "test", "dev"]))
    return Document("d", ("a",) * sentences, tuple(images), links, split)


@given(st.lists(documents(), max_size=20))
def test_statistics_are_those_of_plain_loops(corpus):
    found = corpus_statistics(iter(corpus))
    assert found.total == len(corpus)
    assert list(found.documents) == list(dict.fromkeys(document.split for document in corpus))
    for name in ("sentences", "images"):
        sizes = [len(getattr(document, name)) for document in corpus] or [0]
        found_sizes = getattr(found, name)
        assert found_sizes.median == statistics.median(sizes)
        assert abs(found_sizes.mean - statistics.mean(sizes)) < 1e-12
        assert found_sizes.maximum == max(sizes)
    assert found.unique_images == len({image for document in corpus for image in document.images})
    assert found.unknown_links == sum(document.links is None for document in corpus)
    assert found.links == sum(len(document.links or ()) for document in corpus)
    densities = [
        len(document.links) / (len(document.sentences) * len(document.images))
        for document in corpus
        if document.links is not None and document.sentences and document.images
    ]
    if densities:
        assert abs(found.density - statistics.mean(densities)) < 1e-12
    else:
        assert found.density is None


def test_density_is_the_mean_over_documents():
    """The reading of Table 1's caption under which its own figures for RQA and DIY are possible."""
    short = Document("a", ("a", "b"), ("x", "y"), ((0, 0), (1, 1)))
    long = Document("b", ("a",) * 10, ("x",) * 10, tuple((i, i) for i in range(10)))
    assert corpus_statistics([short, long]).density == (1 / 2 + 1 / 10) / 2


def test_equal_densities_add_up_to_exactly_themselves():
    document = Document("a", ("a",) * 10, ("x",) * 10, tuple((i, i) for i in range(5)))
    assert corpus_statistics([document] * 9999).density == 0.05


def test_memory_grows_by_a_few_bytes_an_image():
    corpus = (
        Document(str(n), ("a",), tuple(f"image-{n}-{i}.jpg" for i in range(20)))
        for n in range(5_000)
    )
    tracemalloc.start()
    try:
        found = corpus_statistics(corpus)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.unique_images == 100_000
    # While two sorted halves are merged, each image is there a few times over.
    assert peak < 48 * 100_000


def test_the_number_of_images_does_not_depend_on_when_they_are_sorted_in(monkeypatch):
    monkeypatch.setattr(module, "_UNSORTED", 3)
    corpus = [Document("d", ("a",), tuple(f"{n * i % 17}" for i in range(5))) for n in range(40)]
    assert corpus_statistics(corpus).unique_images == 17


def test_table_shows_our_exact_row_above_the_papers():
    documents = [
        Document(str(n), ("a",) * 10, tuple(f"{n}-{i}" for i in range(10)), ((0, 0),), split)
        for n, split in enumerate(["train"] * 1200 + ["validation", "test", "test"])
    ]
    table = statistics_table("mscoco", corpus_statistics(documents), TABLE_1["mscoco"])
    assert [line.split() for line in table.splitlines()] == [
        ["train/val/test", "|S|/|V|", "#", "imgs", "density"],
        ["(median)", "(unique)"],
        ["mscoco", "1,200/1/2", "10/10", "12,030", "1.0%"],
        ["the", "paper", "25K/2K/2K", "10/10", "83K", "5%"],
    ]


def test_table_of_a_corpus_without_splits_or_links():
    document = Document("a", ("a", "b", "c"), ("x",))
    table = statistics_table("pages", corpus_statistics([document]), None)
    assert table.splitlines()[-1].split() == ["pages", "1", "without", "split", "3/1", "1", "N/A"]
    assert "the paper" not in table


def test_table_1_is_the_papers(shared_data):
    """Each row of the LaTeX table is what the data give when they are laid out."""
    source = (shared_data.parent / "paper" / "hessel2019.tex").read_text()
    names = {"mscoco": "mscoco", "dii": "dii", "sis": "sis", "dii-stress": "diihard"}
    names |= {"diy": "diy", "rqa": "rqa", "wiki": "wiki"}
    assert set(names) == set(TABLE_1)
    nothing = corpus_statistics([])
    for name, macro in names.items():
        row = statistics_table(name, nothing, TABLE_1[name]).splitlines()[-1].split()[2:]
        latex = rf"\{macro} & {' & '.join(row)} \\"
        assert latex.replace("%", r"\%") in source
