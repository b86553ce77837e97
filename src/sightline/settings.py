"""Every choice of a training run in one frozen record, saved as JSON beside the weights.

The defaults are the paper's (Section 4, "Experiment Protocols"), so that `train` without options
is its recipe; each field says where its value comes from.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from reprlib import repr as shown
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sightline.choices import MaxLinks
from sightline.problems import SightlineError, did_you_mean

SentenceEncoderName = Literal["gru", "attention"]
SimilarityName = Literal["AP", "TK", "DC", "NoStruct"]
NegativesName = Literal["hard", "mean"]
# More than any count needs, and still within what every index can hold.
_LARGEST_NUMBER = 2**31 - 1
LossName = Literal["hinge", "softmax"]
ScheduleName = Literal["plateau", "cosine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a model is and how it was trained; the defaults are the paper's recipe.

    - `sentence_encoder`: "gru", the paper's, or "attention"; `layers`: 1 or 2.
    - `similarity`: one of the document similarities of `docs/method.md`.
    - `max_links`: "all", "half" or a number.
    - `loss`: "hinge" or "softmax"; `negatives`: "hard" or "mean", for the hinge.
    - `negative_documents`: b of the paper; a batch holds b + 1 documents.
    - `schedule` of the learning rate: "plateau", the paper's, or "cosine".

    The source says of each other field what it is, as does `sightline train --help` of those that
    have an option.
    """

    # --- the encoders
    #: Size of the space that sentences and images share (the paper's d_multi).
    dimension: int = 1024
    #: `gru` is the paper's; `attention` an attention-weighted mean of word vectors with a head.
    sentence_encoder: SentenceEncoderName = "gru"
    #: Layers of the image head, and of the sentence head behind `attention`; 1 is the paper's.
    layers: Literal[1, 2] = 1
    #: Width of the hidden layer where `layers` is 2.
    hidden: int = 1024
    #: Size of the word embedding (the paper's word2vec has 300).
    word_dimension: int = 300
    #: Sentences are cut to this many tokens: 20 for captions, 50 for long text (Section 5).
    token_limit: int = 20
    #: Words seen less often in the training documents are unknown (the original code's value).
    minimum_count: int = 5
    #: The image encoder also gets the word vectors of the classes that the backbone sees.
    class_words: bool = False
    #: Word vectors from a file stay as they are, and all of them belong to the vocabulary; only
    #: training words that the file lacks learn theirs. Other words are read as related ones.
    fixed_word_vectors: bool = False

    # --- the objective
    #: How a similarity matrix becomes one document similarity (Section 3.2).
    similarity: SimilarityName = "AP"
    #: Cap on links for TK and AP: `all` is min(sentences, images), `half` half of it, rounded up.
    max_links: MaxLinks = "all"
    loss: LossName = "hinge"
    #: Hardest negative of the batch, or the mean over all of them; only the hinge loss asks.
    negatives: NegativesName = "hard"
    #: b of the paper: a batch holds b + 1 documents, each the others' negative.
    negative_documents: int = 10
    #: A further key of the documents; those of a batch agree in it, so that negatives are alike.
    negatives_within: str = ""
    margin: float = 0.2
    #: Document similarities are divided by it before the softmax loss.
    temperature: float = 0.05

    # --- what training changes at random
    #: Share of the words left out of each sentence.
    word_dropout: float = 0.0
    #: Documents with more sentences or images are cut to so many; 0 leaves them whole.
    document_cut: int = 0

    # --- fine-tuning of the backbone (the paper's supplement, "WIKI Fine-tuning Details")
    #: The backbone's weights learn too, from image files; otherwise its features are fixed.
    finetune_images: bool = False
    #: Of the backbone; it falls with the other one. The paper gives none: 1e-5 is a tenth of its
    #: `learning_rate`, because the weights are trained already.
    image_learning_rate: float = 0.00001
    #: In training, documents with more sentences or images are randomly cut to so many.
    finetune_cut: int = 10
    #: Images that go through the backbone at a time; bounds the memory, and changes rounding only.
    finetune_images_at_once: int = 8

    # --- the optimiser
    epochs: int = 50
    learning_rate: float = 0.0001
    #: On whole word-embedding dimensions per sentence, and on image features.
    dropout: float = 0.4
    #: `plateau` is the paper's; `cosine` falls from step to step until the last epoch.
    schedule: ScheduleName = "plateau"
    #: Steps in which the learning rate rises to its full value, with `cosine`.
    warm_up_steps: int = 200
    #: The learning rate is divided by this when the validation loss stands still ...
    plateau_factor: float = 5.0
    #: ... for more than this many epochs.
    plateau_patience: int = 3
    #: The original code stops lowering the learning rate here.
    minimum_learning_rate: float = 1e-7
    seed: int = 1

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), hints[field.name])
        for name in ("dimension", "hidden", "word_dimension", "token_limit", "minimum_count",
                     "negative_documents", "epochs", "finetune_cut",
                     "finetune_images_at_once"):  # fmt: skip
            if getattr(self, name) < 1:
                raise SightlineError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is int and value > _LARGEST_NUMBER and field.name != "seed":
                raise SightlineError(f"{field.name} is {value}; it must be below 2^31.")
        for name in ("margin", "temperature", "learning_rate", "image_learning_rate",
                     "plateau_factor"):  # fmt: skip
            if not 0 < getattr(self, name) < math.inf:
                raise SightlineError(f"{name} is {getattr(self, name)}; it must be above 0.")
        for name in ("dropout", "word_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise SightlineError(
                    f"{name} is {getattr(self, name)}; it must be from 0 to below 1."
                )
        for name in ("seed", "document_cut", "warm_up_steps"):
            if getattr(self, name) < 0:
                raise SightlineError(f"{name} is {getattr(self, name)}; it must not be negative.")
        if self.class_words and self.finetune_images:
            raise SightlineError("class_words needs a backbone that stays as it is.")
        if isinstance(self.max_links, int) and self.max_links < 1:
            raise SightlineError(f"max_links is {self.max_links}; it must be at least 1.")

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Any, where: str) -> Settings:
        """Settings read back from JSON; `where` names the file in errors."""
        if not isinstance(record, dict):
            raise SightlineError(f"{where}: the settings are not a JSON object.")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(record.keys() - known):
            raise SightlineError(
                f"{where}: unknown setting {unknown[0]!r}; the folder may come from a "
                f"newer version of Sightline.{did_you_mean(unknown[0], known)}"
            )
        try:
            return cls(**record)
        except SightlineError as error:
            raise SightlineError(f"{where}: {error}") from None


def _check_type(name: str, value: object, hint: Any) -> None:
    """Refuse a value of the wrong type or outside its choices, as read from JSON or a caller."""
    options = get_args(hint) if get_origin(hint) is not Literal else (hint,)
    choices: list[Any] = []
    for option in options or (hint,):
        if get_origin(option) is Literal:
            if any(value == choice and type(value) is type(choice) for choice in get_args(option)):
                return
            choices += [str(choice) for choice in get_args(option)]
        else:
            if type(value) is option or (option is float and type(value) is int):
                return
            choices.append({int: "a whole number", float: "a number"}.get(option, option.__name__))
    raise SightlineError(f"{name} is {shown(value)}; expected {' or '.join(choices)}.")
