"""What the decoder of an encoder-decoder reads: a text that is given, or what the model writes itself.

A decoder's row is the token that it reads, so the row that decides about a word is the row before it.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.errors import AttnscopeError, InputError, is_out_of_memory, one_line
from attnscope.model.anatomy.placed import device_of
from attnscope.model.inputs.generation import tokens_by_number
from attnscope.model.inputs.numbered import Numbered
from attnscope.model.inputs.text import limit_of, special_ids, tokens_of, unspelled
from attnscope.reference import exact
from attnscope.tokens import Token, Tokens

MOST_WRITTEN = 200  # tokens, where the model itself would go on for longer


@dataclass(frozen=True, eq=False)
class Target:
    """Decoder input of one run. `written` when the model wrote it; `finished` False where it was cut off.

    So many of its first tokens were `given` to the model: the start, and what its settings put behind that.
    `chances` are the probabilities of the vocabulary at each step that it was written in, where the model
    wrote greedily. `notices` are what the user should be told of a text that was given.
    """

    ids: Int[Tensor, "1 token"]
    tokens: Tokens
    written: bool = False
    finished: bool = True
    chances: Float[Tensor, "step word"] | None = None
    given: int = 1
    notices: tuple[str, ...] = ()


def opening(module: Any, tokenizer: Any) -> Target:
    """The token that the decoder starts from and nothing else: enough when only the encoder is looked at."""
    return _target(module, tokenizer, [_start(module)], "")


def given(module: Any, tokenizer: Any, text: str, name: str) -> Target:
    """The decoder input under which the model called `name` would be taught to write `text`.

    That is the text shifted by one: the start token in front, and not the token that ends it. Raises
    `InputError` for an empty text and one that is too long.
    """
    if not text.strip():
        raise InputError("the target text is empty")
    labels = tokenizer(text_target=text, return_tensors="pt")["input_ids"]
    if labels.numel() and labels[0, -1].item() not in special_ids(tokenizer):
        labels = torch.cat(
            [labels, labels[:, -1:]], 1
        )  # no token ends it, as with GPT-2's: one to be cut off
    shift = getattr(module, "prepare_decoder_input_ids_from_labels", None)
    ids = shift(labels=labels)[0].tolist() if shift else [_start(module), *labels[0, :-1].tolist()]
    if ids[0] in ids[1:2] and ids[0] in (getattr(tokenizer, "prefix_tokens", None) or ()):
        ids = ids[1:]  # a tokenizer that writes the start token itself, as Whisper's does
    limit = limit_of(tokenizer, module)
    if limit is not None and len(ids) > limit:
        raise InputError(f"the target has {len(ids)} tokens, {name} reads at most {limit}")
    target = _target(module, tokenizer, ids, text)
    return replace(target, notices=unspelled(tokenizer, target.tokens, name))


def given_by_number(module: Any, tokenizer: Any, ids: tuple[int, ...], name: str) -> Target:
    """Exactly these tokens as the decoder input of the model called `name`, its start token among them."""
    limit = limit_of(tokenizer, module)
    if limit is not None and len(ids) > limit:
        raise InputError(f"the target has {len(ids)} tokens, {name} reads at most {limit}")
    return Target(torch.tensor([ids], device=device_of(module)), tokens_by_number(tokenizer, ids))


@torch.no_grad()
def written(module: Any, tokenizer: Any, inputs: Any, name: str) -> Target:
    """What the model writes by itself for `inputs`, greedily, or by its own beam search, never by chance."""
    if not hasattr(module, "generate") or module.get_output_embeddings() is None:
        raise InputError(f"{name} has no language-model head and writes no text: give one with --target")
    _start(module)  # refused in our own words where there is none
    limit = limit_of(tokenizer, module)
    most = MOST_WRITTEN if limit is None else min(MOST_WRITTEN, limit - 1)
    try:
        made = module.generate(
            **inputs, do_sample=False, max_new_tokens=most, return_dict_in_generate=True, output_logits=True
        )
    except ValueError as error:  # settings of the checkpoint that the library does not follow
        why = one_line(error).rstrip(".")
        message = f"{name} cannot write as its generation_config.json says, give --target: {why}"
        raise InputError(message) from error
    except AttnscopeError:
        raise
    except Exception as error:  # this is one call of the library, and nothing watches the model meanwhile
        if is_out_of_memory(error):
            raise
        why = one_line(error).rstrip(".")
        raise InputError(f"{name} fails while it writes, give --target: {why}") from error
    sequence = made.sequences[0].tolist()
    settings = module.generation_config
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
    """Tokens for `ids` that spell `text`: cut from it where the tokenizer reads it as these ids again.

    The decoder's start and language tokens stand in front of what the tokenizer makes. Where the text is
    not read as the same ids, each token is spelled by the tokenizer alone.
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
