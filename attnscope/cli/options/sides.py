"""What `attnscope compare` is asked: the one thing that differs, and the word on each side."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated

from attnscope import incoming
from attnscope.cli.options.inputs import SparedRead, Writing, check_something, given
from attnscope.errors import InputError
from attnscope.session.option import argument, given_of, option
from attnscope.session.request import (
    AUDIO,
    CHAT,
    IDS,
    IMAGE,
    PAIR,
    SPLIT,
    SYSTEM,
    TARGET,
    TARGET_IDS,
    TEXT,
    TRUNCATE,
    VOCAB,
    Inputs,
    check_place,
)

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
STORED = (".npz", ".json")


@dataclass(frozen=True)
class Sides:
    """The one thing that differs between both sides, and the word on each of them."""

    PANEL = "What is compared"
    BEYOND = "chats, pictures, sounds"

    word: Annotated[str | None, WORD] = None
    text: Annotated[str | None, TEXT] = None
    text_b: Annotated[str | None, TEXT_B] = None
    texts: Annotated[Path | None, TEXTS] = None
    controls: Annotated[int, CONTROLS] = 1000
    seed: Annotated[int, SEED] = 0
    word_b: Annotated[str | None, WORD_B] = None
    layer_b: Annotated[str | None, LAYER_B] = None
    head_b: Annotated[str | None, HEAD_B] = None
    model_b: Annotated[str | None, MODEL_B] = None
    fail_above: Annotated[float | None, FAIL_ABOVE] = None
    pair: Annotated[str | None, PAIR] = None
    target: Annotated[str | None, TARGET] = None
    target_b: Annotated[str | None, TARGET_B] = None
    image: Annotated[Path | None, IMAGE] = None
    audio: Annotated[Path | None, AUDIO] = None
    target_ids: Annotated[str | None, TARGET_IDS] = None
    truncate: Annotated[bool, TRUNCATE] = False
    split: Annotated[bool, SPLIT] = False
    ids: Annotated[str | None, IDS] = None
    ids_b: Annotated[str | None, IDS_B] = None
    vocab: Annotated[Path | None, VOCAB] = None
    chat: Annotated[Path | None, CHAT] = None
    chat_b: Annotated[Path | None, CHAT_B] = None
    system: Annotated[str | None, SYSTEM] = None

    def __post_init__(self) -> None:
        if self.stored is not None:
            kept = ("text", "text_b", "layer_b", "head_b")
            changed = [option.name for option in fields(self) if getattr(self, option.name) != option.default]
            if there := [f"--{name.replace('_', '-')}" for name in changed if name not in kept]:
                raise InputError(f"two stored runs are all that is compared: leave {' and '.join(there)} out")
            for file in self.stored:
                incoming.check_there(file)
            return
        if self.head_b is not None:
            raise InputError("--head-b is of stored runs: give two files that end in .npz or .json")
        check_place(self.model_b)
        if self.of_tuning:
            self._check_texts("--word", "--word-b", "--target", "--target-ids")
            return
        if self.fail_above is not None:
            raise InputError("--fail-above is of two models over many texts: give --model-b and --texts")
        if self.word is None:
            raise InputError("missing option '--word': name the word, or give two stored runs (.npz, .json)")
        if self.texts is not None:
            self._check_texts("--model-b", "--word-b")
            return
        differing = (self.text_b, self.ids_b, self.chat_b, self.layer_b, self.model_b)
        if sum(side is not None for side in differing) != 1:
            raise InputError(
                "compare one thing at a time: give a second text, --texts, --layer-b or --model-b"
            )
        check_something(self.text, self.ids, self.image, self.audio, self.chat)
        if self.ids_b is not None and self.ids is None:
            raise InputError("--ids-b is compared with --ids: give these too")
        if self.chat_b is not None and self.chat is None:
            raise InputError("--chat-b is compared with --chat: give this too")
        if self.text == self.text_b == "-":
            raise InputError("only one of the two texts can come from standard input")
        if self.layer_b is not None and (self.word_b is not None or self.target_b is not None):
            raise InputError("--layer-b reads one text once: leave --word-b and --target-b out")

    @property
    def stored(self) -> tuple[Path, Path] | None:
        """Two stored runs, where that is what is given."""
        given = [Path(name) for name in (self.text, self.text_b) if name is not None]
        named = [file for file in given if file.suffix.lower() in STORED and file.is_file()]
        if not given or any(file.suffix.lower() not in STORED for file in given):
            if named and len(given) > 1:
                raise InputError(f"'{named[0]}' is a stored run and the other is not: give two files")
            return None
        if len(given) == 1:
            raise InputError(
                f"compare a stored run with another one: give a second file beside '{self.text}'"
            )
        return given[0], given[1]

    @property
    def of_tuning(self) -> bool:
        """Whether all heads of two models are compared, over many texts."""
        return self.texts is not None and self.model_b is not None

    def _check_texts(self, *also: str) -> None:
        assert self.texts is not None, "asked only where there is a file"
        others = ("--layer-b", "--pair", "--image", "--audio", "--ids", "--chat", *also, "TEXT")
        if there := given_of(self, others):
            what = " of two models" if self.of_tuning else ""
            raise InputError(f"--texts{what} is all that is read: leave {' and '.join(sorted(there))} out")
        incoming.check_there(self.texts)

    @property
    def words(self) -> tuple[str, str]:
        assert self.word is not None, "asked only where there is one"
        return self.word, self.word if self.word_b is None else self.word_b

    def inputs(self, writing: Writing) -> tuple[Inputs, Inputs]:
        """What is read on each side."""
        alike = {each.name for each in fields(self)} & {each.name for each in fields(SparedRead)} - {"texts"}
        first = SparedRead(**{name: getattr(self, name) for name in alike}).inputs(writing)
        others = self.text_b, self.ids_b, self.chat_b, self.target_b
        one_target = all(each is None for each in others)
        target = self.target if one_target else self.target_b
        text, remarks = (first.text, first.remarks) if self.text_b is None else given(self.text_b)
        return first, replace(
            first,
            text=text,
            remarks=remarks,
            target=None if target is None else incoming.argument(target),
            ids=self.ids if self.ids_b is None else self.ids_b,
            chat=first.chat if self.chat_b is None else self.chat_b,
            target_ids=self.target_ids if one_target else None,
        )
