"""Decoder input of an encoder-decoder: a given text, or one that the model generates.

A decoder's row is the token that it reads, so the row that decides about a word is the row before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line
from attnscope.model.anatomy.placed import device_of
from attnscope.model.inputs.generation import tokens_by_number
from attnscope.model.inputs.given import Numbered
from attnscope.model.inputs.text import limit_of, special_ids, tokens_of, unspelled
from attnscope.reference import exact
from attnscope.tokens import Token, Tokens

MOST_WRITTEN = 200  # most tokens that are generated


@dataclass(frozen=True, eq=False)
class Target:
    """Decoder input of one run, `1 x token`, and its tokens.

    `written` is True where the model generated it; `finished` False where that was cut off. The first `given`
    tokens were given to the model: the start, and the tokens that its settings put behind that. `chances` are
    the vocabulary's probabilities at each step, where the model wrote greedily. `notices` are for the user.
    """

    ids: Int[Tensor, "1 token"]
    tokens: Tokens
    written: bool = False
    finished: bool = True
    chances: Float[Tensor, "step word"] | None = None
    given: int = 1
    notices: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        """Index of the first token of the text itself, behind `given` and leading special tokens."""
        rest = self.tokens.items[self.given :]
        return self.given + len([*takewhile(lambda token: token.special, rest)])


def opening(module: Any, tokenizer: Any) -> Target:
    """Decoder input of the start token alone: enough when only the encoder is looked at."""
    return _target(module, tokenizer, [_start(module)], "")


def given(module: Any, tokenizer: Any, text: str, name: str, inputs: Any) -> Target:
    """Decoder input of `text`, behind the tokens from which the model would write for `inputs`.

    No end token follows; a text that begins with the start token gets no other. Raises `InputError` for an
    empty text and one that is too long.
    """
    if not text.strip():
        raise InputError("the target text is empty")
    bare, before = _labels(tokenizer, text, add_special_tokens=False), list[int]()
    notices: tuple[str, ...] = ()
    if bare[:1] != [_start(module)]:
        before, notices = _prefix(module, tokenizer, text, inputs, name)
    ids = [*before, *bare]
    _check_length(module, tokenizer, ids, name)
    target = _target(module, tokenizer, ids, text)
    notices = (*notices, *unspelled(tokenizer, target.tokens, name))
    return replace(target, notices=notices, given=max(len(before), 1))


@torch.no_grad()
def _prefix(
    module: Any, tokenizer: Any, text: str, inputs: Any, name: str
) -> tuple[list[int], tuple[str, ...]]:
    """Ids of the tokens from which the model writes for `inputs`, as `generate` makes them, and notices.

    A model's own `generate` makes all of them: Whisper's puts a language, which it may hear, and a task
    behind the start. The library's makes a start token, and perhaps a forced first token; without that the
    tokens that the tokenizer puts in front of a target are used.
    """
    from transformers import GenerationMixin

    notices: tuple[str, ...] = ()
    if own := _writes(module) and type(module).generate is not GenerationMixin.generate:
        try:
            made = _generated(module, inputs, name, "", max_new_tokens=1, num_beams=1)
            return made.sequences[0, : -len(made.logits)].tolist(), ()
        except InputError as error:
            notices = (f"{error}: the target stands behind the tokens that its tokenizer puts in front",)
    start, settings = _start(module), getattr(module, "generation_config", None)
    always = getattr(settings, "forced_bos_token_id", None)
    if always is not None:
        return [start, always], notices
    labels, bare = _labels(tokenizer, text), _labels(tokenizer, text, add_special_tokens=False)
    first = next((i for i in range(len(labels)) if labels[i : i + len(bare)] == bare), 0)
    return ([] if own and labels[0] == start else [start]) + labels[:first], notices


def _labels(tokenizer: Any, text: str, **settings: Any) -> list[int]:
    return list(tokenizer(text_target=text, **settings)["input_ids"])


def given_by_number(module: Any, tokenizer: Any, ids: tuple[int, ...], name: str) -> Target:
    """Decoder input of exactly these token ids, the start token among them."""
    _check_length(module, tokenizer, ids, name)
    return Target(torch.tensor([ids], device=device_of(module)), tokens_by_number(tokenizer, ids))


@torch.no_grad()
def written(module: Any, tokenizer: Any, inputs: Any, name: str) -> Target:
    """Decoder input that the model generates for `inputs`: greedy or its own beam search, never sampled."""
    if not _writes(module):
        raise InputError(f"{name} has no language-model head and writes no text: give one with --target")
    _start(module)  # refused in our own words where there is none
    limit, settings = limit_of(tokenizer, module), module.generation_config
    longest = None if settings.max_length is None else settings.max_length - 1
    own = longest if settings.max_new_tokens is None else settings.max_new_tokens
    most = min(each for each in (MOST_WRITTEN, limit and limit - 1, own) if each is not None)
    how = {} if most == own else {"max_new_tokens": most}
    made = _generated(module, inputs, name, ", give --target", **how)
    sequence = made.sequences[0].tolist()
    ends = settings.eos_token_id
    ended = sequence[-1] in (ends if isinstance(ends, list) else [ends])
    # some models are made to end at the last step whatever they would have said
    finished = ended and not (settings.forced_eos_token_id is not None and len(sequence) > most)
    greedy = (settings.num_beams or 1) == 1
    chances = exact(torch.cat(made.logits)).softmax(-1) if greedy else None
    ids = sequence[:-1] if ended and len(sequence) > 1 else sequence
    text = tokenizer.decode(ids, skip_special_tokens=True)
    target = _target(module, tokenizer, ids, text)
    given = len(sequence) - len(made.logits) if greedy else 1
    return replace(target, written=True, finished=finished, chances=chances, given=given)


def _writes(module: Any) -> bool:
    return hasattr(module, "generate") and module.get_output_embeddings() is not None


def _generated(module: Any, inputs: Any, name: str, instead: str, **settings: Any) -> Any:
    settings |= {"do_sample": False, "return_dict_in_generate": True, "output_logits": True}
    try:
        return module.generate(**inputs, **settings)
    except ValueError as error:  # settings of the checkpoint that the library does not follow
        why = one_line(error).rstrip(".")
        raise InputError(f"{name} cannot write as its generation_config.json says{instead}: {why}") from error
    except AttnscopeError:
        raise
    except Exception as error:  # this is one call of the library, and nothing watches the model meanwhile
        if is_out_of_memory(error):
            raise
        raise InputError(f"{name} fails while it writes{instead}: {one_line(error).rstrip('.')}") from error


def _check_length(module: Any, tokenizer: Any, ids: Sequence[int], name: str) -> None:
    limit = limit_of(tokenizer, module)
    if limit is not None and len(ids) > limit:
        raise InputError(f"the target has {len(ids)} tokens, {name} reads at most {limit}")


def _start(module: Any) -> int:
    holders = (getattr(module, "generation_config", None), module.config)
    names = ("decoder_start_token_id", "bos_token_id")
    stated = (getattr(holder, name, None) for name in names for holder in holders)
    start = next((each for each in stated if isinstance(each, int)), None)
    if start is None:
        raise InputError(f"the config of {type(module).__name__} does not say what a decoder starts from")
    return start


def _target(module: Any, tokenizer: Any, ids: list[int], text: str) -> Target:
    return Target(torch.tensor([ids], device=device_of(module)), tokens_by_text(tokenizer, ids, text))


def tokens_by_text(tokenizer: Any, ids: list[int], text: str) -> Tokens:
    """Tokens of `ids`, cut from `text` where the tokenizer reads the text as these ids again.

    The decoder's start and language tokens come first. Where the ids differ, each token is spelled by itself.
    """
    if isinstance(tokenizer, Numbered):
        return tokens_by_number(tokenizer, tuple(ids))
    encoding = tokenizer(text_target=text, return_tensors="pt")
    read = tokens_of(tokenizer, encoding, (text,)).items
    spoken = [token for token in read if not token.added]
    lead = len(ids) - len(spoken)
    pieces = tokenizer.convert_ids_to_tokens(ids)
    if spoken and lead >= 0 and [token.id for token in spoken] == ids[lead:]:
        return Tokens((text,), (*_alone(tokenizer, ids[:lead], pieces), *spoken))
    return Tokens((text,) if text else (), _alone(tokenizer, ids, pieces))


def _alone(tokenizer: Any, ids: list[int], pieces: list[str]) -> tuple[Token, ...]:
    special = special_ids(tokenizer)
    unknown = {tokenizer.unk_token_id} - special
    pieces = [f"#{i}" if piece is None else piece for i, piece in zip(ids, pieces, strict=False)]
    spelled = (str(tokenizer.convert_tokens_to_string([piece])) for piece in pieces)
    return tuple(
        Token(i, piece, text, None, None, special=i in special, unknown=i in unknown)
        for i, piece, text in zip(ids, pieces, spelled, strict=False)
    )
