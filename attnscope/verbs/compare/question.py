"""Compare a word in two or many texts, two models, two runs.

The word may also be compared in two layers. How alike its query, key, value and output vectors are,
layer by layer, and what it attends to on each side. Of the layers and heads that are asked for, that is
shown of the head that differs most; the table has every layer. By words, the vectors of a word are the
means over its pieces. Rows are compared as they are, or as they are once special tokens are taken out
and the rest is scaled up; hiding them changes only what is shown. Of many texts (--texts) the cosines
of all pairs are told, and where their lines have labels, how alike pairs of one label and of two are,
beside labels that are shuffled.

Two models over many texts (--model-b with --texts, no word; an adapter's folder is a model) are compared
head by head: how far the attention of each moved, beside what rounding does, by whose doing, and what
putting the old head back does to the answer.

Two stored runs, files that heads -o wrote, are compared head by head: what each query gives more under
the second, beside what rounding may do and how far two heads of one layer differ. Texts, checkpoints,
kernels and precisions may differ, not the number of tokens. Two that corpus -o wrote are compared in the
mean of every head by every measure at equal length of texts, with its standard error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Union

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.session.option import SHOWN, argument, option, slots, words
from attnscope.session.prompts import labelled_in
from attnscope.session.question import Files, OfSides, R_co, named
from attnscope.session.request import (
    GENERATE,
    TARGET,
    TARGET_IDS,
    TEXT,
    TRUNCATE,
    Inputs,
    ReadOptions,
    Tokens,
    check_place,
    check_something,
)
from attnscope.session.wanted import HEADS, LAYERS, Attention, Numbers, Wanted
from attnscope.session.which import Heads, Looked, Name

if TYPE_CHECKING:
    from attnscope.results import Comparison, CorpusDifference, Difference, Drift, Result, Senses  # noqa: F401
    from attnscope.results.claims.prompts import Prompt
    from attnscope.session.listener import Listener
    from attnscope.session.opening import Opened

STORED, MOST_CONTROLS = (".npz", ".json"), 100_000
_HERE = "attnscope.verbs.compare"
_BLOCK = "compare looks at block 0 of a layer: leave --block out"

TEXT_B = argument(
    "TEXT_B", help="A second text with the word. Where both end in .npz or .json they are stored runs."
)
WORD = option(
    "--word", metavar="TOKEN",
    help='The word: a token\'s text or its position, or several ("the door", 4-5), of which the means are '
    "compared; with --words whole words.",
    brief="the word: its text or position",
)  # fmt: skip
WORD_B = option("--word-b", metavar="TOKEN", help="The word on the second side, where it is another one.")
LAYER_B = option(
    "--layer-b", metavar="N",
    help="Compare with this layer, in the same text: needs --layer.",
    brief="with this layer, in the same text",
)  # fmt: skip
HEAD_B = option("--head-b", metavar="N", help="Of stored runs: compare --head of the first with this one.")
MODEL_B = option(
    "--model-b", metavar="NAME",
    help="Compare with this model, on the same text, or all its heads over --texts.",
    brief="with this model, on the same text or --texts",
)  # fmt: skip
IDS_B = option("--ids-b", metavar="N,N,...", help="Compare with these tokens, where --ids are the first.")
CHAT_B = option("--chat-b", metavar="FILE", help="Compare with this conversation, where --chat is the first.")
TARGET_B = option("--target-b", metavar="TEXT", help="What the decoder reads on the second side.")
TEXTS = option(
    "--texts", metavar="FILE",
    help="Compare the word in all lines of a file, '-' for standard input: one text a line, or LABEL, a tab "
    'and the text, which makes groups; a line of a .jsonl file has "text", "label" and "spans", which are '
    "words as field:a. With --model-b and no word: all heads of both models.",
    brief="in all lines of a file: text, or LABEL, tab, text",
)  # fmt: skip
CONTROLS = option(
    "--controls", metavar="N",
    help="Of --texts with labels: how often these are shuffled, unless fewer ways to give them are all.",
)  # fmt: skip
SEED = option("--seed", metavar="N", help="What the shuffling starts from.")
FAIL_ABOVE = option(
    "--fail-above", metavar="SHARE",
    help="Of two models over --texts: end with exit code 6 where any head moved further, as .05: 5 % of what "
    "its queries give goes to other tokens. Answers are shown and do not count.",
)  # fmt: skip


class Compared(OfSides[R_co]):
    """What all forms have in common; `ALL` says of the form that nothing else goes with it."""

    PANEL: ClassVar[str] = "What is compared"
    PANELS: ClassVar[Mapping[str, str]] = {
        "generate": "Text that the model writes",
        **dict.fromkeys(("words", "special", "by"), SHOWN),
    }
    BEYOND: ClassVar[str] = "chats, pictures, sounds, generating"
    OF_THIS_MODEL, ALL = True, "--texts is all that is read"

    texts: Any  # of the forms that read many

    def __post_init__(self) -> None:
        for file in self.files_read:
            if isinstance(file, Path):
                incoming.check_there(file)
        super().__post_init__()

    @property
    def files_read(self) -> tuple[Any, ...]:
        return (self.texts,)

    @property
    def read_again(self) -> tuple[str, ...] | None:
        """What is read of many texts, as words of a command; None of what is in no file."""
        return words(self, self.READS) if isinstance(self.texts, Path) and str(self.texts) != "-" else None

    def known_to(self, result: Any) -> None:
        files = [each for each in self.files_read if isinstance(each, Path)]
        every = len(files) == len(self.files_read)
        if every and len({*files}) == len({each.name for each in files} - {"-"}):
            super().known_to(result)

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        if "--head-b" in options:
            return "--head-b is of stored runs: give two files that end in .npz or .json"
        if "--fail-above" in options:
            return "--fail-above is of two models over many texts: give --model-b and --texts"
        return f"{cls.ALL}: leave {' and '.join(sorted(options))} out"

    @classmethod
    def lacking(cls, options: str) -> str:
        return f"missing option '{options}': name the word, or give two stored runs (.npz, .json)"


@dataclass(frozen=True)
class Runs(Compared["Difference | CorpusDifference"]):
    """What each query of run `b` gives more than under run `a`: overviews or heads, or files that hold them.

    Texts, checkpoints, kernels and precisions may differ, not the number of tokens. Heads of one number are
    held against each other, those of `layer` and `head` or all; with `layer_b` or `head_b` that head of `b`,
    and of two single heads these two. Of two corpora it is the difference of the mean of every head, with its
    standard error. Rows differ by a Jensen-Shannon divergence in nats, 0 to ln 2. Raises `InputError` for
    runs that cannot be paired.
    """

    KIND, ANSWER = "Difference", f"{_HERE}.difference:compare_runs"
    ALL = "two stored runs are all that is compared"

    a: Annotated[Union["Result", str, Path], TEXT]
    b: Annotated[Union["Result", str, Path], TEXT_B]
    _: KW_ONLY
    layer: Annotated[Numbers, LAYERS] = None
    head: Annotated[Numbers, HEADS] = None
    layer_b: Annotated[Numbers, LAYER_B] = None
    head_b: Annotated[Numbers, HEAD_B] = None

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            if isinstance(file := getattr(self, name), str):
                object.__setattr__(self, name, Path(file))
        super().__post_init__()

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.layer, self.head)

    @property
    def files_read(self) -> tuple[Any, ...]:
        return self.a, self.b

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        files = [Path(given[name]) for name in ("text", "text_b") if name in given]
        named = [file for file in files if file.suffix.lower() in STORED]
        if not files or len(named) < len(files):
            if len(files) > 1 and (there := [file for file in named if file.is_file()]):
                raise InputError(f"'{there[0]}' is a stored run and the other is not: give two files")
            return False
        if len(files) == 1:
            raise InputError(f"compare a stored run with another one: give a second file beside '{files[0]}'")
        return True

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        return f"{cls.ALL}: leave {' and '.join(options)} out"


@dataclass(frozen=True)
class Tuned(Heads, Compared["Drift"]):
    """How far the attention of every head moved from this model to a `tuned` one, over the `texts`.

    That is a model of the same shape, or its name, an adapter's folder as well. Beside it stands how far
    this model moves from itself in another precision, what a head does by its own weights, and what
    putting the old head back does to the answer. `exceeding` of the result are the heads that moved
    beyond `fail_above`, a share: .05 is 5 % of what a head's queries give. Texts that are too long are
    cut with `truncate`.
    """

    KIND, ANSWER, READS = "Drift", f"{_HERE}.drift:compare_tuned", ("texts", "truncate")
    ALL, over = "--texts of two models is all that is read", "how far heads moved"
    METHODS = ("Model.compare",)

    tuned: Annotated[str | Path | Any, MODEL_B]
    texts: Annotated[Path | Sequence[str], TEXTS]
    _: KW_ONLY
    fail_above: Annotated[float | None, FAIL_ABOVE] = None
    truncate: Annotated[bool, TRUNCATE] = False
    seed: Annotated[int, SEED] = 0

    def __post_init__(self) -> None:
        if self.block:
            raise InputError(_BLOCK)
        if isinstance(self.tuned, str):
            check_place(self.tuned)
        if not isinstance(self.texts, Path) and not self.texts:
            raise InputError("no text: attention is compared over one text at least")
        if self.fail_above is not None and not 0 <= self.fail_above <= 1:
            raise InputError(f"--fail-above {self.fail_above:g}: how far a head moves lies between 0 and 1")
        super().__post_init__()

    @cached_property
    def prompts(self) -> "tuple[Prompt, ...]":
        """The texts by their lines."""
        given: Any = self.texts
        of_file = ((each.line, each.text) for each in labelled_in(given)) if self.file else ()
        lines = of_file or enumerate(given, start=1)
        return tuple(named("attnscope.results.claims.prompts:Prompt")(*line) for line in lines)

    @property
    def file(self) -> str:
        """What the file of the texts is called; empty where there is none."""
        return incoming.called(self.texts) if isinstance(self.texts, Path) else ""

    def answer_in(self, opened: "Opened", listener: "Listener") -> "Drift":
        found: Drift = named(f"{_HERE}.library:compare_models")(opened, self, listener)
        return found

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return {"texts", "model_b"} <= {*given}

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        if {"--by", "--words", "--special"} & {*options}:
            return "two models are compared over all tokens: leave --by, --words and --special out"
        return super().refused(options)


@dataclass(frozen=True, kw_only=True)
class OfWord(Attention):
    """Which layers and heads are looked at, and how: of what is compared one is shown in full."""

    layer: Annotated[Numbers, LAYERS] = None
    head: Annotated[Numbers, HEADS] = None

    @property
    def wanted(self) -> Wanted:
        """The heads in the layers that are meant."""
        if self.block:
            raise InputError(_BLOCK)
        return Wanted.of(self, self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class InTexts(OfWord, Looked, Compared["Senses"]):
    """One word in many texts, by their labels where they have some."""

    KIND, ANSWER = "Senses", f"{_HERE}.words:compare_senses"
    READS = "texts", "target", "target_ids", "truncate", "generate"

    word: Annotated[str, WORD]
    texts: Annotated[Path, TEXTS]
    controls: Annotated[int, CONTROLS] = 1000
    seed: Annotated[int, SEED] = 0
    target: Annotated[str | None, TARGET] = None
    target_ids: Annotated[Tokens | None, TARGET_IDS] = None
    truncate: Annotated[bool, TRUNCATE] = False
    generate: Annotated[int | None, GENERATE] = None

    def __post_init__(self) -> None:
        if not 1 <= self.controls <= MOST_CONTROLS:
            raise InputError(f"--controls {self.controls}: give 1 to {MOST_CONTROLS}")
        self.inputs  # noqa: B018 - refused in its words
        super().__post_init__()

    @property
    def inputs(self) -> Inputs:
        """What is read with every text."""
        return Inputs(**{name: getattr(self, name) for name in self.READS if name != "texts"})

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return "texts" in given


@dataclass(frozen=True)
class Word(OfWord, Looked):
    """One `word`, on the second side `word_b` where that is another one, or in another layer, `layer_b`."""

    word: Annotated[Name, WORD]
    word_b: Annotated[Name | None, WORD_B] = None
    _: KW_ONLY
    layer_b: Annotated[Numbers, LAYER_B] = None

    @property
    def both(self) -> tuple[str, str]:
        """The word on each side."""
        return str(self.word), str(self.word if self.word_b is None else self.word_b)


@dataclass(frozen=True, kw_only=True)
class BothSides:
    """The text, and what is another one on the second side."""

    text: Annotated[str | None, TEXT] = None
    text_b: Annotated[str | None, TEXT_B] = None
    model_b: Annotated[str | None, MODEL_B] = None
    target_b: Annotated[str | None, TARGET_B] = None
    ids_b: Annotated[Tokens | None, IDS_B] = None
    chat_b: Annotated[Path | None, CHAT_B] = None


@dataclass(frozen=True, kw_only=True)
class OnTwoSides(Word, BothSides, ReadOptions, Compared["Comparison"]):
    """One word in two texts, in two layers or under two models."""

    KIND, ANSWER = "Comparison", f"{_HERE}.words:compare_word"
    READS, TEXTS = tuple(slots(ReadOptions)), ("text", "text_b")

    files: Files = field(default=Files())

    def __post_init__(self) -> None:
        check_place(self.model_b)
        differing = (self.text_b, self.ids_b, self.chat_b, self.layer_b, self.model_b)
        if sum(side is not None for side in differing) != 1:
            raise InputError(
                "compare one thing at a time: give a second text, --texts, --layer-b or --model-b"
            )
        check_something(self.text, self.ids, self.image, self.audio, self.chat)
        for name in ("ids", "chat"):
            if getattr(self, f"{name}_b") is not None and getattr(self, name) is None:
                these = "these too" if name == "ids" else "this too"
                raise InputError(f"--{name}-b is compared with --{name}: give {these}")
        if self.text == self.text_b == "-":
            raise InputError("only one of the two texts can come from standard input")
        if self.layer_b is not None and (self.word_b is not None or self.target_b is not None):
            raise InputError("--layer-b reads one text once: leave --word-b and --target-b out")
        ReadOptions.__post_init__(self)
        self.inputs  # noqa: B018 - refused in its words
        Compared.__post_init__(self)
        if self.layer_b is not None and self.wanted.layer is None:
            raise InputError("--layer-b needs --layer: the layer that it is compared with")

    @property
    def inputs(self) -> tuple[Inputs, Inputs]:
        """What is read on each side."""
        first = Inputs(**{name: getattr(self, name) for name in self.READS})
        others = self.text_b, self.ids_b, self.chat_b, self.target_b
        one_target = all(each is None for each in others)
        return first, replace(
            first,
            text=self.text if self.text_b is None else self.text_b,
            target=self.target if one_target else self.target_b,
            ids=self.ids if self.ids_b is None else self.ids_b,
            chat=first.chat if self.chat_b is None else self.chat_b,
            target_ids=self.target_ids if one_target else None,
        )

    @property
    def files_read(self) -> tuple[Any, ...]:
        return tuple(each for each in (getattr(self.chat, "file", None), self.chat_b) if each is not None)

    def into(self, files: Files) -> "OnTwoSides":
        return replace(self, files=files)

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        texts = {"--controls", "--seed"} & {*options}
        return f"{options[0]} is of many texts: give --texts" if texts else super().refused(options)


FORMS = (Runs, Tuned, InTexts, OnTwoSides)
