"""RecipeQA documents, on question files in its schema.

No genuine file could be had. The fields are known from a record of train.json that a public
notebook prints (visual coherence: steps with `id`, `title`, `body`, `videos`, no `images`; image
names `<recipe>_<step>_<number>.jpg`), from public code for the textual cloze task (questions under
`data`, steps with `body` and `images`), and from the supplement (title and body of a step).
"""

from collections import Counter, defaultdict

import orjson
import pytest
from counted_corpora import corpus_statistics
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sightline.image_folders import ImageFolder
from sightline.problems import ProblemError, Problems, SightlineError
from sightline.readers.recipeqa import read_recipeqa


def question(recipe, context, task="textual_cloze", split="train"):
    return {
        "recipe_id": recipe,
        "context_modality": ["body", "images", "videos"],
        "split": split,
        "context": context,
        "choice_list": ["Bake", "Mix", "Eat", "Rest"],
        "answer": 0,
        "qid": "1000-1-0-1-2-3",
        "question_modality": ["title"],
        "question": ["Mix", "@placeholder", "Rest", "Eat"],
        "task": task,
        "question_text": "Choose the best title for the missing blank.",
    }


def textual(recipe, images, **changes):
    """A textual question: images and bodies of the steps, no titles."""
    steps = [
        {
            "id": number,
            "body": f"Body {number} of {recipe}.",
            "images": [f"{recipe}_{number}_{n}.jpg" for n in range(count)],
            "videos": [],
        }
        for number, count in enumerate(images)
    ]
    return question(recipe, steps, **changes)


def visual(recipe, steps, **changes):
    """A visual question: titles and bodies of the steps, no images."""
    context = [
        {"id": n, "body": f"Body {n} of {recipe}.", "videos": [], "title": f"Title {n}"}
        for n in range(steps)
    ]
    return question(recipe, context, task="visual_coherence", **changes)


def write(path, questions):
    path.write_bytes(orjson.dumps({"version": "1.0", "data": questions}))
    return path


def build(folder, train, validation_questions, problems=None, dropped=None, **options):
    settings_ = {"seed": 1, "validation": 0.127, "images": None, **options}
    return list(
        read_recipeqa(
            write(folder / "train.json", train),
            write(folder / "val.json", validation_questions),
            problems=problems or Problems(strict=True),
            dropped=Counter() if dropped is None else dropped,
            **settings_,
        )
    )


def test_a_recipe_is_put_together_from_its_questions(tmp_path):
    train = [visual("pie", 3), textual("pie", [1, 0, 2]), visual("pie", 3), textual("pie", [1])]
    (document,) = build(tmp_path, train, [])
    assert document.id == "pie"
    assert document.sentences == tuple(f"Title {n} Body {n} of pie." for n in range(3))
    assert document.images == ("pie_0_0.jpg", "pie_2_0.jpg", "pie_2_1.jpg")
    assert document.links == ((0, 0), (2, 1), (2, 2))
    assert document.split == "train"


@given(st.permutations(range(4)))
def test_the_order_of_questions_does_not_matter(tmp_path_factory, order):
    questions = [visual("pie", 3), textual("pie", [1, 0, 2]), visual("pie", 2), textual("pie", [1])]
    folder = tmp_path_factory.mktemp("rqa")
    shuffled = build(folder, [questions[n] for n in order], [])
    assert shuffled == build(folder, questions, [])


def test_steps_without_tokens_go_with_their_images(tmp_path):
    cake = textual("cake", [1, 2, 1, 1])
    cake["context"][1]["body"] = " \n"
    # The only image belongs to a step without text: the supplement's own example.
    soup = textual("soup", [0, 0, 1])
    soup["context"][2]["body"] = ""
    dropped = Counter()
    (document,) = build(tmp_path, [cake, soup], [], dropped=dropped)
    assert document.id == "cake"
    assert document.images == ("cake_0_0.jpg", "cake_2_0.jpg", "cake_3_0.jpg")
    assert document.links == ((0, 0), (1, 1), (2, 2))
    assert +dropped == {"steps without tokens": 2, "recipes without images of their steps": 1}


def test_short_recipes_are_dropped_after_the_validation_split(tmp_path):
    train = [textual("one-step", [2]), textual("one-image", [1, 0]), textual("good", [1, 1])]
    dropped = Counter()
    documents = build(tmp_path, train, [], validation=3, dropped=dropped)
    # All three were reserved; then two of them were too short.
    assert [(document.id, document.split) for document in documents] == [("good", "val")]
    assert +dropped == {"recipes of fewer than two steps or images": 2}


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=8, max_size=30),
    seed=st.integers(0, 5),
)
def test_splits_and_links(tmp_path_factory, sizes, seed):
    recipes = {f"recipe-{n}": images for n, images in enumerate(sizes)}
    cut = len(recipes) // 4
    test = [textual(r, images, split="val") for r, images in list(recipes.items())[:cut]]
    train = [textual(r, images) for r, images in list(recipes.items())[cut:]]
    documents = build(tmp_path_factory.mktemp("rqa"), train, test, seed=seed, validation=0.25)
    good = {r for r, images in recipes.items() if len(images) >= 2 and sum(images) >= 2}
    assert {document.id for document in documents} == good
    splits = defaultdict(set)
    for document in documents:
        splits[document.split].update(document.images)
        images = recipes[document.id]
        assert len(document.links) == len(document.images) == sum(images)
        assert len(document.sentences) == len(images)
        for sentence, image in document.links:
            assert document.images[image].startswith(f"{document.id}_{sentence}_")
    assert sum(map(len, splits.values())) == len(set().union(*splits.values()))
    given_test = {document.id for document in documents if document.split == "test"}
    assert given_test == good & set(list(recipes)[:cut])
    # Every image is linked to one step, so a document's density is one in its steps.
    if documents:
        expected = sum(1 / len(d.sentences) for d in documents) / len(documents)
        assert abs(corpus_statistics(documents).density - expected) < 1e-12


def test_the_papers_share_is_reserved_by_the_seed(tmp_path):
    train = [textual(f"r{n}", [1, 1]) for n in range(1000)]
    documents = build(tmp_path, train, [])
    assert corpus_statistics(documents).documents == {"train": 873, "val": 127}
    assert documents == build(tmp_path, train, [])
    assert documents != build(tmp_path, train, [], seed=2)


def test_a_recipe_of_the_test_split_is_not_trained_on(tmp_path):
    train = [textual("pie", [1, 1]), textual("cake", [1, 1])]
    dropped = Counter()
    documents = build(tmp_path, train, [textual("pie", [1, 1])], validation=0, dropped=dropped)
    assert [(d.id, d.split) for d in documents] == [("cake", "train"), ("pie", "test")]
    assert +dropped == {"training recipes that the test split has": 1}


def test_missing_and_invalid_images_are_dropped(tmp_path):
    folder = tmp_path / "images" / "train" / "images-qa"
    folder.mkdir(parents=True)
    for n in range(3):
        Image.new("RGB", (30, 20), "teal").save(folder / f"pie_{n}_0.jpg")
    (folder / "pie_1_0.jpg").write_bytes(b"\xff\xd8\xff")
    images = ImageFolder.open(tmp_path / "images", tmp_path / "corpus")
    dropped = Counter()
    (document,) = build(tmp_path, [textual("pie", [2, 1, 1])], [], images=images, dropped=dropped)
    names = [f"../images/train/images-qa/pie_{n}_0.jpg" for n in (0, 2)]
    assert document.images == tuple(names)
    assert document.links == ((0, 0), (2, 1))
    assert +dropped == {"missing images": 1, "invalid images": 1}


BAD = [
    (7, None, "found a whole number"),
    ({"context": []}, "recipe_id", "no such key"),
    ({"recipe_id": "", "context": []}, "recipe_id", "an empty string"),
    ({"recipe_id": "x"}, "context", "no such key"),
    ({"recipe_id": "x", "context": {}}, "context", "an object"),
    ({"recipe_id": "x", "context": ["step"]}, "context[0]", "a string"),
    ({"recipe_id": "x", "context": [{"title": "a"}]}, "context[0].id", "no such key"),
    ({"recipe_id": "x", "context": [{"id": 1, "body": None}]}, "context[0].body", "null"),
    ({"recipe_id": "x", "context": [{"id": 1, "images": [None]}]}, "context[0].images", "names"),
]


@pytest.mark.parametrize(("record", "field", "reason"), BAD)
def test_bad_questions_are_counted_and_skipped(tmp_path, record, field, reason):
    train = [textual("pie", [1, 1]), record]
    problems = Problems()
    documents = build(tmp_path, train, [], problems=problems)
    assert [document.id for document in documents] == ["pie"]
    (problem,) = problems.first
    assert (problem.line, problem.field) == ("data[1]", field)
    assert reason in problem.reason
    with pytest.raises(ProblemError):
        build(tmp_path, train, [])


def test_a_file_of_another_kind_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "train.json").write_text("[]")
    with pytest.raises(SightlineError, match="expected a JSON object, found a list"):
        options = {"seed": 1, "validation": 0.1, "images": None}
        path = tmp_path / "train.json"
        next(read_recipeqa(path, path, **options, problems=Problems(), dropped=Counter()))
