"""A stored run made anew under this installation, and held against the file."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from attnscope.analysis.claims.comparison.checking import checked_head, checked_heads
from attnscope.analysis.claims.comparison.difference import head_in
from attnscope.capture.arithmetic import move_weights
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import Check, HeadWeights, Kind, LongHead, Overview, Provenance, Result
from attnscope.results.heads import MEAN
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.looking import ENTROPY
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.questions.claims.answers import of_answers
from attnscope.session.questions.claims.files_read import Given, heads_in, inputs_of, medium_in
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.reading import Reading, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import MEANS, Numbers, Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import IN_PARTS, KERNELS, Route

RUNS = 2  # that rounding is put into on purpose
Shown = TypeVar("Shown", Overview, HeadWeights)


@dataclass(frozen=True)
class Leave:
    """What a file cannot allow by itself, and where to run in place of the stored device and model.

    `given` is the picture or the sound that was read, where it is not where it was.
    """

    model: str | None = None
    device: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    given: Given = field(default_factory=Given)


def check_stored(stored: Result, path: Path, leave: Leave, listener: Listener) -> Check:
    """Run what was read from `path` once more and compare; `InputError` for what cannot be run again."""
    name = path.name
    shown = _shown(stored, name)
    sensed = inputs_of(shown, medium_in(stored), leave.given, path)
    reading, chosen, changes = _read_anew(shown, sensed, name, leave, listener)
    anew = _asked(reading, chosen, shown)
    moved = []
    for run in range(RUNS):
        move_weights(reading.model.module, run)  # nobody else has this model
        moved.append(_asked(reading, chosen, shown))
    if isinstance(shown, Overview):
        heads = checked_heads(shown, _each(Overview, [anew])[0], _each(Overview, moved))
    else:
        heads = [checked_head(shown, _each(HeadWeights, [anew])[0], _each(HeadWeights, moved))]
    changes += _changes(shown.provenance, anew.provenance)
    return Check(name, tuple(heads), tuple(changes), shown.provenance, anew.provenance)


def _in_tiles(held: Overview) -> bool:
    return held.weights is None and held.provenance.kernel.endswith(IN_PARTS)


def _shown(stored: Result, name: str) -> Overview | HeadWeights:
    held = heads_in(stored)
    if isinstance(held, LongHead) or (isinstance(held, Overview) and _in_tiles(held)):
        raise InputError(f"{name} was computed in tiles and holds no weight of every pair: ask for it anew")
    if isinstance(held, Overview):
        overview = held.tokens or held
        if overview.weights is None:
            raise InputError(f"{name} leaves the weights of its heads out: give the npz")
        return overview
    if (head := head_in(held)) is None:
        raise InputError(f"{name} holds no weights of heads: give what `attnscope heads -o FILE.npz` wrote")
    return head


def _each(kind: type[Shown], results: Sequence[Overview | HeadWeights]) -> list[Shown]:
    return [result for result in results if isinstance(result, kind)]


def _read_anew(
    shown: Overview | HeadWeights,
    sensed: tuple[Inputs, list[str]] | None,
    name: str,
    leave: Leave,
    listener: Listener,
) -> tuple[Reading, Chosen, list[str]]:
    request, wanted = _request(shown.provenance, leave), _wanted(shown)
    if sensed is not None:
        inputs, changes = sensed
        opened = open_model(request, inputs, wanted, Purpose.ATTENTION, listener)
        if opened.model.writes:
            inputs = _with_target(replace(inputs, text=None), shown, writes=True)
        return read_inputs(opened, inputs, listener), _chosen(opened), changes
    by_ids, texts = Inputs(ids=shown.provenance.token_ids), _texts(shown, writes=False)
    first = by_ids if texts is None else _of_texts(by_ids, texts)
    opened = open_model(request, first, wanted, Purpose.ATTENTION, listener)
    inputs = _with_target(by_ids, shown, opened.model.writes)
    reading, changes = _read(opened, shown, inputs, name, listener)
    return reading, _chosen(opened), changes


def _chosen(opened: Opened) -> Chosen:
    assert opened.chosen is not None, "heads are wanted"
    return opened.chosen


def _asked(reading: Reading, chosen: Chosen, shown: Overview | HeadWeights) -> Overview | HeadWeights:
    heads = OpenedHeads(reading, chosen)
    if isinstance(shown, HeadWeights):
        return heads.weights()
    there = tuple(measure for measure in shown.scores if measure in MEASURES)
    of_text = tuple(measure for measure in there if measure not in of_answers(there))
    return heads.overview(of_text or ENTROPY)


def _request(stored: Provenance, leave: Leave) -> ModelRequest:
    kernel = next((name for name in KERNELS if name in stored.kernel.split(", ")), "eager")
    return ModelRequest(
        model=leave.model or stored.model,
        device=leave.device or ("auto" if "+" in stored.device else stored.device),  # no map is stored
        dtype=stored.dtype,
        revision=None if leave.model else stored.revision,
        trust_remote_code=leave.trust_remote_code,
        allow_pickle=leave.allow_pickle,
        attention=kernel,
        ignore_unread=bool(stored.unread),
        adapter=stored.adapter,
        tokenizer=stored.tokenizer,
    )


def _wanted(shown: Overview | HeadWeights) -> Wanted:
    routes = {str(route): route.option for route in Route}
    layer: Numbers = list(shown.layers) if isinstance(shown, Overview) else shown.layer
    head: Numbers = list(shown.heads) if isinstance(shown, Overview) else shown.head
    return Wanted(
        layer=None if layer == MEAN else layer,
        head="mean" if head == MEAN else head,
        kind=shown.kind.value,
        tower=shown.tower or None,
        block=0 if isinstance(shown, Overview) else shown.block,
        route=routes.get(shown.provenance.route),
        takes=MEANS,
    )


def _of_texts(by_ids: Inputs, texts: tuple[str, ...]) -> Inputs:
    return replace(by_ids, ids=None, text=texts[0], pair=texts[1] if len(texts) > 1 else None)


def _with_target(inputs: Inputs, shown: Overview | HeadWeights, writes: bool) -> Inputs:
    if not writes or shown.kind is Kind.ENCODER:
        return inputs
    return replace(inputs, target_ids=shown.query_tokens.ids)


def _read(
    opened: Opened, shown: Overview | HeadWeights, by_ids: Inputs, name: str, listener: Listener
) -> tuple[Reading, list[str]]:
    stored, texts = shown.provenance.token_ids, _texts(shown, opened.model.writes)
    changes = []
    if texts is not None:
        reading = _read_text(opened, _of_texts(by_ids, texts), listener)
        if reading is not None and reading.encoded.tokens.ids == stored:
            mine, now = (
                [token.piece for token in each.items] for each in (_text_read(shown), reading.encoded.tokens)
            )
            return reading, [] if mine == now else ["the tokenizer spells these tokens otherwise now"]
        if len(texts) > 1:
            raise InputError(f"{name}: the pair of texts is cut into other tokens now, and is not run again")
        changes.append("the text is cut into other tokens now: the stored tokens were run")
    return read_inputs(opened, by_ids, listener), changes


def _read_text(opened: Opened, inputs: Inputs, listener: Listener) -> Reading | None:
    try:
        return read_inputs(opened, inputs, listener)
    except InputError:
        return None  # the stored tokens tell as much


def _texts(shown: Overview | HeadWeights, writes: bool) -> tuple[str, ...] | None:
    tokens = _text_read(shown)
    hidden = writes and shown.kind is Kind.DECODER
    written_otherwise = tokens.written or tokens.words_given or tokens.numbers or tokens.given
    return None if hidden or written_otherwise or not tokens.texts or not all(tokens.texts) else tokens.texts


def _text_read(shown: Overview | HeadWeights) -> Tokens:
    return shown.key_tokens if shown.kind is Kind.CROSS else shown.query_tokens


def _changes(stored: Provenance, now: Provenance) -> list[str]:
    changes = []
    for what, mine, other in (
        ("the weights of the model have changed", stored.digest, now.digest),
        ("the revision is another one", stored.revision, now.revision),
        ("the device is another one", stored.device, now.device),
        ("the kernel is another one", stored.kernel, now.kernel),
        ("the route is another one", stored.route, now.route),
    ):
        if mine != other and not (what.startswith("the weights") and None in (mine, other)):
            changes.append(f"{what}: stored {_short(mine)}, now {_short(other)}")
    for name in dict.fromkeys((*stored.versions, *now.versions)):
        mine, other = stored.versions.get(name), now.versions.get(name)
        if mine != other:
            changes.append(f"{name}: stored {_short(mine)}, now {_short(other)}")
    return changes


def _short(value: str | None) -> str:
    return "none" if value is None else value[:19] if value.startswith("sha256:") else value
