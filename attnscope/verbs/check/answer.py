"""Reruns a stored run under this installation, and compares the numbers with the file.

The picture or the sound that it was made of is found again by the hash of its file.

Two things may differ between installations that both are right. The arithmetic of the head itself: that is
the tolerance of its certificate. And what arrives there: all that the layers before rounded. How far this
carries cannot be read off the number of layers, for it depends on the model and on the text. So it is
measured: in further runs every weight of the model is moved by its own precision
(`capture.arithmetic`), and a number may be off by `TIMES` of what it moves by there besides. In
float64, and with all sums in another order, no number of three models used more than half of that; of one
tolerance for each layer they used from a seventh to all.

Scores are dimensionless logits, as the tolerance is; vectors are held against their largest entry.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from attnscope import incoming
from attnscope.analysis.heads.view import head_in
from attnscope.capture.arithmetic import move_weights
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.register import registered
from attnscope.results import (
    Certificate,
    HeadAttention,
    HeadWeights,
    Kind,
    LongHead,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    Provenance,
    Result,
    Sound,
    SoundAttention,
    SoundHeads,
    Verdict,
)
from attnscope.results.base.presented import Value
from attnscope.results.heads import MEAN
from attnscope.results.stored.codec import Object, encode
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import ENTROPY, Opened, open_model
from attnscope.session.option import slots, slots_of, spoken
from attnscope.session.question import Alone, question_of
from attnscope.session.questions.answers import of_answers
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.reading import Reading, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import MEANS, Numbers, Wanted
from attnscope.tokens import Frames, Patches, Tokens
from attnscope.verbs.check.result import Check, HeadCheck, PartCheck
from attnscope.vocabulary import IN_PARTS, KERNELS, Purpose, Route

RUNS = 2  # that rounding is put into on purpose
Shown = TypeVar("Shown", Overview, HeadWeights)
Medium = Picture | Sound


@dataclass(frozen=True)
class Leave:
    """Permissions and overrides for a rerun: model, device, remote code, pickle, and the input's file.

    `image` or `audio` is the file that was read, where it has moved.
    """

    model: str | None = None
    device: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    image: Path | None = None
    audio: Path | None = None

    @property
    def file(self) -> Path | None:
        """The given picture or sound file, if any; `InputError` where both are given."""
        if self.image is not None and self.audio is not None:
            raise InputError("--image and --audio: give one of the two")
        return self.image or self.audio


def check_stored(stored: Result, path: Path, leave: Leave, listener: Listener) -> Check:
    """Reruns the stored run of `path` and compares; `InputError` for what cannot be run again."""
    name = path.name
    held = heads_in(stored)
    whole = (held.tokens or held).weights if isinstance(held, Overview) else head_in(held)
    if stored.asked_by and whole is None:
        return _answered_anew(stored, path, leave, listener)
    shown = _shown(stored, name)
    sensed = inputs_of(shown, medium_in(stored), leave, path)
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


def _answered_anew(stored: Any, path: Path, leave: Leave, listener: Listener) -> Check:
    """Asks the stored question again about the stored input, and compares the answers."""
    told: Any = getattr(stored, "provenance", None)
    verb, *options = stored.asked_by
    alone = stored.asks_alone
    forms = registered()[verb].forms if verb in registered() else ()
    textless = bool(forms) and issubclass(forms[0], Alone)
    if not (textless if alone else forms and told.run):
        raise InputError(f"{path.name} does not say which model answered: ask for it anew")
    files = stored.asked_of if alone else told.files
    if leave.file is not None and (alone or not files):
        raise InputError(f"{path.name} is of no picture and no sound: leave --image and --audio out")
    if not alone and told.read is None and told.token_ids:
        raise InputError(f"{path.name} does not say what was read: ask for it anew")
    said = ((), ()) if alone else (told.read or (), told.run)
    read, asked = ([*_there(each, files, path, leave.file)] for each in (said[0], options))
    every = forms if alone else (*forms, ModelRequest)
    given = spoken(every, (*(read if textless else ()), *asked, *said[1]))
    of_model = {name: given.pop(name) for name in slots(ModelRequest) if name in given}
    of_model |= {"trust_remote_code": leave.trust_remote_code, "allow_pickle": leave.allow_pickle}
    of_model |= {} if leave.model is None else {"name": leave.model, "revision": None}
    of_model |= {} if leave.device is None else {"device": leave.device, "device_map": None}
    inputs = {} if textless else spoken([Inputs], read)
    values = given if textless else inputs
    named = [
        values[name]
        for name, slot in slots_of(forms if textless else [Inputs]).items()
        if name in values and slot.option.metavar == "FILE"
    ]
    question: Any = question_of(forms, given)
    read_by_it = question.files_read if textless else ()
    for file in (*named, *(each for each in read_by_it if isinstance(each, Path))):
        if Path(file).name not in files:
            raise InputError(f"{path.name} does not say which file {file} was: ask for it anew")
    if alone and not hasattr(question, "request") and (leave.model or leave.device):
        raise InputError(f"{path.name} needs no model: leave --model and --device out")
    question, reads = question.reads(Inputs(**inputs))
    request = replace(getattr(question, "request", None) or ModelRequest(), **of_model)
    opened = dict[ModelRequest, Opened]()

    def opening(request: ModelRequest, *how: Any) -> Opened:
        """Opens each model once for all runs, so that its weights can be moved in between."""
        if request not in opened:
            inputs, wanted, purpose, _, *check = how
            opened[request] = open_model(request, inputs, wanted, purpose, listener, *check)
        return opened[request]

    def answer() -> Any:
        if isinstance(question, Alone):
            return question.answer(request, Quiet(), opening).result
        one = opening(request, reads, question.wanted, question.purpose(reads), listener)
        looked_at = replace(one, chosen=None) if question.whole else one
        return question.answered(read_inputs(looked_at, reads, Quiet()), one.chosen).result

    anew, moved = answer(), []
    if type(anew) is not type(stored):
        raise InputError(f"{path.name} is what a program asked for, and no command: ask it there")
    for run in range(RUNS if opened else 0):
        for each in opened.values():
            move_weights(each.model.module, run)
        moved.append(answer())
    parts = checked_parts(stored, anew, moved, npz=path.suffix != ".json")
    now = getattr(anew, "provenance", None)
    changes = _changes(told, now) if told and now else []
    return Check(path.name, (), tuple(changes), told, now, tuple(parts), anew.verdict)


def _there(said: Iterable[str], files: Mapping[str, str], run: Path, given: Path | None) -> Iterator[str]:
    """Command-line words with each file at its present path; `InputError` where it is gone or has changed."""
    for word in said:
        if word not in files:
            yield word
            continue
        places = [each for each in (given, run.parent / word, Path(word)) if each is not None]
        there = next((each for each in places if each.is_file()), None)
        if there is None:
            raise InputError(
                f"{word} is neither beside {run.name} nor here: put there the file that was read"
            )
        if (digest := incoming.sha256(there)) != files[word]:
            raise InputError(
                f"{there} is not the file that was read: its sha256 is {digest[:12]}, stored is "
                f"{files[word][:12]}"
            )
        yield str(there)


def _shown(stored: Result, name: str) -> Overview | HeadWeights:
    held = heads_in(stored)
    tiles = isinstance(held, Overview) and held.weights is None and held.provenance.kernel.endswith(IN_PARTS)
    if tiles or isinstance(held, LongHead):
        raise InputError(f"{name} was computed in tiles and holds no weight of every pair: ask for it anew")
    if isinstance(held, Overview):
        overview = held.tokens or held
        if overview.weights is None:
            raise InputError(f"{name} leaves the weights of its heads out: give the npz")
        return overview
    if (head := head_in(held)) is None:
        raise InputError(f"{name} holds no weights of heads, and no question to ask again: ask it anew")
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
        assert opened.chosen is not None, "heads are wanted"
        return read_inputs(opened, inputs, listener), opened.chosen, changes
    by_ids, texts = Inputs(ids=shown.provenance.token_ids), _texts(shown, writes=False)
    first = by_ids if texts is None else _of_texts(by_ids, texts)
    opened = open_model(request, first, wanted, Purpose.ATTENTION, listener)
    inputs = _with_target(by_ids, shown, opened.model.writes)
    reading, changes = _read(opened, shown, inputs, name, listener)
    assert opened.chosen is not None, "heads are wanted"
    return reading, opened.chosen, changes


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
        leave.model or stored.model,
        device=leave.device or ("auto" if "+" in stored.device else stored.device),  # no map is stored
        dtype=stored.dtype,
        revision=None if leave.model else stored.revision,
        trust_remote_code=leave.trust_remote_code,
        allow_pickle=leave.allow_pickle,
        attn=kernel,
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
        reading = None
        with suppress(InputError):  # the stored tokens tell as much
            reading = read_inputs(opened, _of_texts(by_ids, texts), listener)
        if reading is not None and reading.encoded.tokens.ids == stored:
            mine, now = (
                [token.piece for token in each.items] for each in (_text_read(shown), reading.encoded.tokens)
            )
            return reading, [] if mine == now else ["the tokenizer spells these tokens otherwise now"]
        if len(texts) > 1:
            raise InputError(f"{name}: the pair of texts is cut into other tokens now, and is not run again")
        changes.append("the text is cut into other tokens now: the stored tokens were run")
    return read_inputs(opened, by_ids, listener), changes


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


def medium_in(stored: Result) -> Medium | None:
    """The picture or sound that was read, where the file says which; else None."""
    if isinstance(stored, PictureAttention | PictureHeads):
        return stored.picture
    return stored.sound if isinstance(stored, SoundAttention | SoundHeads) else None


def heads_in(stored: Result) -> Result:
    """The heads inside a picture's or sound's result, else the result itself."""
    if isinstance(stored, PictureAttention | SoundAttention):
        return stored.head
    return stored.overview if isinstance(stored, PictureHeads | SoundHeads) else stored


def inputs_of(
    shown: Overview | HeadWeights, medium: Medium | None, given: Leave, run: Path
) -> tuple[Inputs, list[str]] | None:
    """Picture or sound input for the rerun, and notes on what differs; None where a text alone was read.

    A file that is not given is looked for beside the `run` and in this folder. Raises `InputError` where it
    is not there, or is another one than was read.
    """
    name, file = run.name, given.file
    if medium is None and not _sensed(shown):
        if file is not None:
            raise InputError(f"{name} is of a text: leave --image and --audio out")
        return None
    kinds = {type(each) for each in (*shown.query_tokens.stretches, *shown.key_tokens.stretches)}
    heard = isinstance(medium, Sound) or (Frames in kinds and Patches not in kinds)
    option = "--audio" if heard else "--image"
    if file is not None and (given.audio is not None) is not heard and (medium or _named(shown)):
        raise InputError(f"{name} is of a {'sound' if heard else 'picture'}: give it with {option}")
    changes = []
    if medium is None:
        if file is None:
            raise InputError(
                f"{name} does not say which picture or sound it is of: give the file with --image or --audio"
            )
        changes.append(f"the file does not say what was read: {file.name} was taken for it")
        heard = given.audio is not None
    else:
        file = _found(medium, file, run, option)
    texts = shown.query_tokens.texts
    text = texts[0] if texts else None
    return (Inputs(text=text, audio=file) if heard else Inputs(text=text, image=file)), changes


def _found(medium: Medium, given: Path | None, run: Path, option: str) -> Path:
    own = Path(medium.name).name
    places = [run.parent / own, Path(own)]
    there = given or next((place for place in places if place.is_file()), None)
    if there is None:
        where = f"is neither beside {run.name} nor here"
        raise InputError(f"{own} {where}: give the file that was read with {option}")
    digest = incoming.sha256(there)
    if digest != medium.digest:
        raise InputError(
            f"{there} is not the file that was read: its sha256 is {digest[:12]}, stored is "
            f"{medium.digest[:12]}: give that one with {option}"
        )
    return there


def _sensed(shown: Overview | HeadWeights) -> bool:
    ids = shown.provenance.token_ids
    return not ids or min(ids) < 0 or _named(shown)


def _named(shown: Overview | HeadWeights) -> bool:
    return bool(shown.query_tokens.stretches or shown.key_tokens.stretches)


TIMES = 4
_VECTORS = ("q", "k", "v", "output")
_EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
_UNCERTIFIED = 32  # epsilons that a weight without a certificate may be off
_OWN = 1e-6  # of the largest entry, or of 1: what a number of an answer may be off by itself
_NOTHING = np.zeros(0, object)  # where there is no such place
# fields that say where and how numbers were computed, or how well they are proved
_OF_THE_RUN = {
    "provenance", "module", "modules", "certificate", "certificates", "certified", "verdict", "verdicts",
    "verdict_of_each", "case", "notes", "unlike",
}  # fmt: skip

# stage, how far it is off, what its own arithmetic may round, what rounding before it moves it by
Off = tuple[str, float, float, float]


def checked_head(stored: HeadWeights, anew: HeadWeights, moved: Sequence[HeadWeights]) -> HeadCheck:
    """Compares one stored head with its rerun; `moved` are reruns with weights moved by their precision."""
    return _worst(stored.layer, stored.head, _head(stored, anew, moved), anew.verdict)


def checked_heads(stored: Overview, anew: Overview, moved: Sequence[Overview]) -> list[HeadCheck]:
    """Compares every head of a stored overview with its rerun: weights and measures."""
    return [
        _worst(layer, head, _of_overview(stored, anew, moved, i, j), anew.certificates[i][j].verdict)
        for i, layer in enumerate(stored.layers)
        for j, head in enumerate(stored.heads)
    ]


def checked_parts(
    stored: Result, anew: Result, moved: Sequence[Result], *, npz: bool = True
) -> list[PartCheck]:
    """Compares every field of a stored answer with its rerun; without `npz` only the fields of JSON.

    A word, rank or place that has changed counts as stored where a moved run changes it too: rounding decides
    it.
    """
    was, now, *others = (encode(each, npz=npz) for each in (stored, anew, *moved))
    return [
        _part(name, was, now, others) for name, each in {**was, **now}.items() if _is_compared(name, each)
    ]


def _part(name: str, was: Object, now: Object, others: Sequence[Object]) -> PartCheck:
    stored, anew, *moved = (dict(_leaves(each.get(name), name)) for each in (was, now, *others))
    made = [PartCheck(name, 0.0, 0.0)]
    for place in {**stored, **anew}:
        a, b, *c = (each.get(place, _NOTHING) for each in (stored, anew, *moved))
        if None in (a.tolist(), b.tolist()):
            continue  # a model that is loaded for less has no such number
        if a.dtype.kind == b.dtype.kind == "f":
            largest, carried = float(np.abs(b[np.isfinite(b)]).max(initial=1.0)), _carried(b, c)
            made.append(PartCheck(name, _off(a, b), _OWN * largest + TIMES * carried, carried))
        elif not np.array_equal(a, b) and all(np.array_equal(b, each) for each in c):
            made.append(PartCheck(name, math.inf, 0.0))
    return max(made, key=_times)


def _is_compared(name: str | int, value: Value) -> bool:
    """Whether a field is part of the answer itself; an integer `layers` counts those in memory."""
    origin = isinstance(value, dict) and "versions" in value  # of one of two sides
    return not origin and name not in _OF_THE_RUN and not (name == "layers" and isinstance(value, int))


def _leaves(value: Value, place: str) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            if _is_compared(name, each):
                yield from _leaves(each, f"{place}.{name}")
    else:
        yield place, np.asarray(value)


def _of_overview(
    stored: Overview, anew: Overview, moved: Sequence[Overview], i: int, j: int
) -> Iterator[Off]:
    tolerance = _tolerance(stored.certificates[i][j], stored.provenance.dtype)
    now = anew.dense_weights[i][j]
    carried = _carried(now, [each.dense_weights[i][j] for each in moved])
    yield "weights", _off(stored.dense_weights[i][j], now), tolerance, carried
    query, key = stored.strongest[i, j].tolist()
    was, there = stored.strongest_weight[i : i + 1, j], stored.dense_weights[i][j]
    yield "strongest", 0.0 if query < 0 else _off(was, there[query, key : key + 1]), 0.0, 0.0
    for name in stored.scores.keys() & anew.scores.keys():
        span = max(1.0, *(abs(each) for each in stored.scores[name].limits if math.isfinite(each)))
        was, now, *others = (each.scores[name].values[i : i + 1, j] for each in (stored, anew, *moved))
        yield name, _off(was, now), tolerance * len(stored.key_tokens) * span, _carried(now, others)


def _head(stored: HeadWeights, anew: HeadWeights, moved: Sequence[HeadWeights]) -> Iterator[Off]:
    tolerance = _tolerance(stored.certificate, stored.provenance.dtype)

    def off(name: str, allowed: float) -> Off:
        was, now, *others = (getattr(each, name) for each in (stored, anew, *moved))
        return name, _off(was, now), allowed, _carried(now, others)

    yield off("weights", tolerance)
    yield "allowed", 0.0 if np.array_equal(stored.allowed, anew.allowed) else math.inf, 0.0, 0.0
    if not isinstance(stored, HeadAttention) or not isinstance(anew, HeadAttention):
        return
    yield off("scaled", tolerance)
    yield off("scores", tolerance / abs(stored.scale or 1.0))
    for name in _VECTORS:
        now = getattr(anew, name)
        largest = float(np.nanmax(np.abs(now))) if np.isfinite(now).any() else 0.0
        yield off(name, stored.certificate.output_tolerance * largest)


def _tolerance(certificate: Certificate, dtype: str) -> float:
    own = certificate.weight_tolerance
    return own if own > 0 else _UNCERTIFIED * _EPSILON.get(dtype, float(np.finfo(np.float32).eps))


def _off(a: Float[np.ndarray, "..."], b: Float[np.ndarray, "..."]) -> float:
    """The largest absolute difference; infinite where shapes, or the places of finite numbers, differ."""
    if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
        return math.inf
    there = np.isfinite(a)
    return float(np.abs(a[there] - b[there]).max()) if there.any() else 0.0


def _carried(anew: Float[np.ndarray, "..."], moved: Sequence[Float[np.ndarray, "..."]]) -> float:
    """The largest difference from reruns with moved weights; non-finite differences are ignored."""
    found = [_off(anew, each) for each in moved]
    return max((each for each in found if math.isfinite(each)), default=0.0)


def _worst(layer: int, head: int, offs: Iterator[Off], verdict: Verdict) -> HeadCheck:
    made = [
        HeadCheck(layer, head, stage, off, own + TIMES * carried, verdict, carried)
        for stage, off, own, carried in offs
    ]
    return max(made, key=_times)


def _times(one: HeadCheck | PartCheck) -> float:
    return one.off / one.allowed if one.allowed > 0 else math.inf if one.off > 0 else 0.0
