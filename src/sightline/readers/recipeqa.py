"""RecipeQA's recipes, out of the contexts of its questions.

    {"data": [{"recipe_id": "apple-pie", "task": "textual_cloze", ...,
               "context": [{"id": 1, "title": "Dough", "body": "Mix it.",
                            "images": ["apple-pie_1_0.jpg"]}, ...]}, ...]}

A context leaves out what its question asks for: those of visual questions have no `images`, those
of textual ones need not have a `title`. A recipe is put together from all of its contexts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sightline.documents import Document, FieldError, kind
from sightline.image_folders import ImageFolder
from sightline.problems import Problems
from sightline.readers.json_records import as_object, id_field, number_field, read_lists, text_field
from sightline.sentences import tokenize
from sightline.splits import split_size

#: A document has so many steps, and so many images, at least.
_MINIMUM = 2


@dataclass(slots=True)
class _Step:
    title: str = ""
    body: str = ""
    images: dict[str, None] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"{self.title} {self.body}".strip()


#: The steps of each recipe, by their number in it.
_Recipes = dict[str, dict[int, _Step]]


def read_recipeqa(
    train: Path,
    given_validation: Path,
    *,
    seed: int,
    validation: float,
    images: ImageFolder | None,
    problems: Problems,
    dropped: Counter[str],
) -> Iterator[Document]:
    """Yield a document per recipe: its steps, its images, and which step each image is of.

    The given validation recipes are the test split; `validation` is the share of the training
    recipes, or their number from 1 on, that is reserved for validation.
    """
    train_recipes, test_recipes = _recipes(train, problems), _recipes(given_validation, problems)
    for recipe_id in test_recipes:
        if train_recipes.pop(recipe_id, None):
            dropped["training recipes that the test split has"] += 1
    train_documents = _drafts(train_recipes, images, dropped)
    test_documents = _drafts(test_recipes, images, dropped)
    size = split_size(len(train_documents), validation, "val")
    reserved = set(random.Random(seed).sample(sorted(train_documents), size))
    for recipe_id, steps in train_documents.items():
        yield from _documents(
            recipe_id, steps, "val" if recipe_id in reserved else "train", dropped
        )
    for recipe_id, steps in test_documents.items():
        yield from _documents(recipe_id, steps, "test", dropped)


def _recipes(path: Path, problems: Problems) -> _Recipes:
    """Put each recipe together from the contexts of its questions, in order of appearance."""
    recipes: _Recipes = {}
    (questions,) = read_lists(path, "data")
    for index, question in enumerate(questions):
        try:
            record = as_object(question)
            recipe_id = id_field(record, "recipe_id")
            steps = _context(record)
        except FieldError as error:
            problems.add(path, f"data[{index}]", error.field, error.reason)
            continue
        recipe = recipes.setdefault(recipe_id, {})
        for number, step in steps:
            _merge(recipe.setdefault(number, _Step()), step)
    return recipes


def _context(record: dict[str, Any]) -> list[tuple[int, _Step]]:
    """Give the steps of a context and their numbers."""
    context = record.get("context")
    if not isinstance(context, list):
        found = kind(context) if "context" in record else "no such key"
        raise FieldError("context", f"expected a list of steps, found {found}")
    steps = []
    for place, step in enumerate(context):
        try:
            steps.append(_step(as_object(step)))
        except FieldError as error:
            name = f"context[{place}]" + (f".{error.field}" if error.field else "")
            raise FieldError(name, error.reason) from None
    return steps


def _step(record: dict[str, Any]) -> tuple[int, _Step]:
    images = record.get("images", [])
    if not isinstance(images, list) or not all(type(i) is str and i.strip() for i in images):
        raise FieldError("images", "expected a list of file names")
    title, body = (text_field({name: "", **record}, name) for name in ("title", "body"))
    step = _Step(title.strip(), body.strip(), dict.fromkeys(images))
    return number_field(record, "id"), step


def _merge(step: _Step, other: _Step) -> None:
    """Take over what another context says of the same step, if it says more."""
    step.title = max(step.title, other.title, key=len)
    step.body = max(step.body, other.body, key=len)
    step.images.update(other.images)


def _drafts(
    recipes: _Recipes, images: ImageFolder | None, dropped: Counter[str]
) -> dict[str, list[_Step]]:
    """Drop steps without tokens, images that cannot be had, and recipes without images.

    An image goes with its step: what the paper discards is the step, and its density of 17 % at a
    median of 6 steps is what documents have in which every image is linked.
    """
    if images is not None:
        _drop_images(recipes, images, dropped)
    drafts = {}
    for recipe_id, by_number in recipes.items():
        steps = [step for _, step in sorted(by_number.items()) if tokenize(step.text)]
        dropped["steps without tokens"] += len(by_number) - len(steps)
        if any(step.images for step in steps):
            drafts[recipe_id] = steps
        else:
            dropped["recipes without images of their steps"] += 1
    return drafts


def _drop_images(recipes: _Recipes, images: ImageFolder, dropped: Counter[str]) -> None:
    steps = [step for recipe in recipes.values() for step in recipe.values()]
    invalid = images.invalid(dict.fromkeys(image for step in steps for image in step.images))
    for step in steps:
        kept: dict[str, None] = {}
        for image in step.images:
            path = images.find(image)
            if path is None:
                dropped["missing images"] += 1
            elif image in invalid:
                dropped["invalid images"] += 1
            else:
                kept[images.name(path)] = None
        step.images = kept


def _documents(
    recipe_id: str, steps: list[_Step], split: str, dropped: Counter[str]
) -> Iterator[Document]:
    """Yield the recipe's document, unless it is too short for one."""
    places = {image: place for place, image in enumerate(_distinct_images(steps))}
    if len(steps) < _MINIMUM or len(places) < _MINIMUM:
        dropped["recipes of fewer than two steps or images"] += 1
        return
    links = tuple(
        (number, places[image]) for number, step in enumerate(steps) for image in step.images
    )
    yield Document(recipe_id, tuple(step.text for step in steps), tuple(places), links, split)


def _distinct_images(steps: list[_Step]) -> dict[str, None]:
    return dict.fromkeys(image for step in steps for image in step.images)
