"""A text that the model writes on: how far and in what way, what it wrote, and how that is spelled.

The newest token is never fed back to the model, so it is no part of what was read: as in transformers,
N new tokens are N - 1 more rows of attention.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.errors import InputError, one_line
from attnscope.tokens import Token, Tokens

_UNFINISHED = "\ufffd"  # what a tokenizer writes for the first bytes of a character


@dataclass(frozen=True)
class Settings:
    """How many tokens to write at most, and how: the likeliest each time, or drawn by lot from `seed` on."""

    most: int
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None

    @property
    def how(self) -> str:
        if self.seed is None:
            return "greedily"
        told = {"temperature": self.temperature, "top-p": self.top_p}
        ways = [f"{name} {value:g}" for name, value in told.items() if value is not None]
        return ", ".join([f"sampled with seed {self.seed}", *ways])

    @property
    def arguments(self) -> dict[str, Any]:
        """The same for `model.generate`; what is not said here its generation config says."""
        told = {"temperature": self.temperature, "top_p": self.top_p}
        return {
            "max_new_tokens": self.most,
            "do_sample": self.seed is not None,
            "num_beams": 1,
            "use_cache": True,
            **{name: value for name, value in told.items() if value is not None},
        }


@dataclass(frozen=True, eq=False)
class Written:
    """A token sequence of which the first `given` were given and the model wrote the others, `how` says how.

    `finished` when it came to an end by itself. `chances` are the probabilities at each step, where the
    likeliest token was taken.
    """

    ids: tuple[int, ...]
    given: int
    how: str
    finished: bool
    chances: Float[Tensor, "step word"] | None = None

    @property
    def read(self) -> tuple[int, ...]:
        """All but the last token: what the model has read by then."""
        return self.ids[:-1]


@torch.no_grad()
def write(module: Any, inputs: Any, settings: Settings, name: str) -> Written:
    """What the model called `name` writes after `inputs`, or as an answer to them, of a batch of one.

    Random numbers are drawn from the seed alone, and those of the process are left as they were. Raises
    `InputError` for a model that cannot write, and for settings that the library does not follow.
    """
    head = getattr(module, "get_output_embeddings", lambda: None)
    if not hasattr(module, "generate") or not module.can_generate() or head() is None:
        raise InputError(f"{name} has no language-model head and writes no text")
    device = module.device
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            if settings.seed is not None:
                torch.manual_seed(settings.seed)
            made = module.generate(
                **inputs, **settings.arguments, return_dict_in_generate=True, output_logits=True
            )
    except ValueError as error:  # settings of the checkpoint or of the user
        raise InputError(f"{name} does not write on: {one_line(error).rstrip('.')}") from error
    ids = tuple(made.sequences[0].tolist())
    told = module.generation_config.eos_token_id
    ends = told if isinstance(told, list) else [told]
    chances = torch.cat(made.logits).double().softmax(-1) if settings.seed is None else None
    return Written(ids, len(ids) - len(made.logits), settings.how, ids[-1] in ends, chances)


def check_room(tokens: int, most: int, limit: int | None, name: str) -> None:
    """Raises `InputError` where `name` cannot read `tokens` and then all but the last of `most` more."""
    if limit is not None and tokens + most - 1 > limit:
        room = max(limit - tokens + 1, 0)
        raise InputError(
            f"{most} tokens after {tokens} are too many: {name} reads at most {limit}, so that --generate "
            f"{room} is the most"
        )


def tokens_read(tokenizer: Any, written: Written, prompt: Tokens) -> Tokens:
    """The tokens of `prompt` and those that the model wrote and read again, of a text of their own."""
    text, items = spelled(tokenizer, written, len(prompt.texts))
    texts = (*prompt.texts, text)
    return Tokens(texts, prompt.items + items[:-1], prompt.stretches, written.how)


def spelled(tokenizer: Any, written: Written, part: int) -> tuple[str, tuple[Token, ...]]:
    """The text that was written, and its tokens as text number `part`, cut from it where they can be.

    A token is what the decoded sequence grows by; the bytes of one character share it.
    """
    text, spans = _grown(tokenizer, written)
    fast = getattr(tokenizer, "is_fast", False)
    encoding = tokenizer(text, add_special_tokens=False) if text and fast else None
    pieces = tokenizer.convert_ids_to_tokens(list(written.ids))
    special = set(tokenizer.all_special_ids)
    items = []
    for i in range(written.given, len(written.ids)):
        id, start, end = written.ids[i], *spans[i]
        own = text[start:end]
        if id in special or not (own and fast):
            alone = "" if id in special else own or str(tokenizer.convert_tokens_to_string([pieces[i]]))
            items.append(Token(id, pieces[i], alone, None, None, part, special=id in special))
        else:
            first = start + len(own) - len(own.lstrip())
            word = encoding.char_to_word(first) if encoding is not None and first < end else None
            items.append(Token(id, pieces[i], own, (start, end), word, part))
    return text, tuple(items)


def _grown(tokenizer: Any, written: Written) -> tuple[str, dict[int, tuple[int, int]]]:
    """The text after the given tokens, and by position what of it each token brought, as start and end."""

    def decoded(count: int) -> str:
        ids = list(written.ids[:count])
        return str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    before = len(decoded(written.given))
    start, waiting = before, list[int]()
    spans: dict[int, tuple[int, int]] = {}
    for i in range(written.given, len(written.ids)):
        text = decoded(i + 1)
        waiting.append(i)
        if not text.endswith(_UNFINISHED) or i + 1 == len(written.ids):
            spans |= {each: (start - before, len(text) - before) for each in waiting}
            start, waiting = len(text), []
    return decoded(len(written.ids))[before:], spans
