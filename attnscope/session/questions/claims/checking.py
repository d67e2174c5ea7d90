"""A stored run made anew under this installation, and held against the file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

from attnscope import incoming
from attnscope.analysis.claims.comparison.checking import checked_head, checked_heads, checked_parts
from attnscope.analysis.claims.comparison.difference import head_in
from attnscope.capture.arithmetic import move_weights
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import Check, HeadWeights, Kind, LongHead, Overview, Provenance, Result
from attnscope.results.heads import MEAN
from attnscope.session import verbs
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener, Quiet
from attnscope.session.looking import ENTROPY
from attnscope.session.opening import Opened, open_model
from attnscope.session.option import slots, spoken
from attnscope.session.question import OfModel, form_of, question_from
from attnscope.session.questions.claims.answers import of_answers
from attnscope.session.questions.claims.files_read import Given, heads_in, inputs_of, medium_in
from attnscope.session.questions.heads import OpenedHeads
from attnscope.session.reading import Reading, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import MEANS, Numbers, Wanted
from attnscope.tokens import Tokens
from attnscope.vocabulary import IN_PARTS, KERNELS, Purpose, Route

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
    if stored.asked_by and not _holds_weights(stored):
        return _answered_anew(stored, path, leave, listener)
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


def _holds_weights(stored: Result) -> bool:
    held = heads_in(stored)
    if isinstance(held, Overview):
        return (held.tokens or held).weights is not None
    return head_in(held) is not None


def _answered_anew(stored: Any, path: Path, leave: Leave, listener: Listener) -> Check:
    """The question that the file says it answers, asked again of what it says was read."""
    told, (verb, *options) = stored.provenance, stored.asked_by
    if not told.run or verb not in [each.name for each in iter_modules(verbs.__path__)]:
        raise InputError(f"{path.name} does not say which model answered: ask for it anew")
    forms = import_module(f"{verbs.__name__}.{verb}").FORMS
    given = spoken((*forms, ModelRequest), (*options, *told.run))
    of_model = {name: given.pop(name) for name in slots(ModelRequest) if name in given}
    of_model |= {"trust_remote_code": leave.trust_remote_code, "allow_pickle": leave.allow_pickle}
    of_model |= {} if leave.model is None else {"name": leave.model, "revision": None}
    of_model |= {} if leave.device is None else {"device": leave.device, "device_map": None}
    alone = issubclass(forms[0], OfModel)
    kinds = forms if alone else [Inputs]
    read = spoken(kinds, _there(told, path, leave.given))
    for name, slot in (pair for kind in kinds for pair in slots(kind).items()):
        if slot.option.metavar == "FILE" and name in read and Path(read[name]).name not in told.files:
            raise InputError(f"{path.name} does not say which file {read[name]} was: ask for it anew")
    question = question_from(form_of(forms, given), given | read if alone else given)
    question, inputs = question.reads(Inputs() if alone else Inputs(**read))
    request, purpose = ModelRequest(**of_model), question.purpose(inputs)
    opened = open_model(request, inputs, question.wanted, purpose, listener)

    def answer() -> Any:
        if isinstance(question, OfModel):
            return question.answer_in(opened, Quiet())
        looked_at = replace(opened, chosen=None) if question.whole else opened
        return question.answered(read_inputs(looked_at, inputs, Quiet()), opened.chosen).result

    anew, moved = answer(), []
    if type(anew) is not type(stored):
        raise InputError(f"{path.name} is what a program asked for, and no command: ask it there")
    for run in range(RUNS):
        move_weights(opened.model.module, run)  # nobody else has this model
        moved.append(answer())
    parts = checked_parts(stored, anew, moved, npz=path.suffix != ".json")
    changes = _changes(told, anew.provenance)
    return Check(path.name, (), tuple(changes), told, anew.provenance, tuple(parts), anew.verdict)


def _there(told: Provenance, run: Path, given: Given) -> Iterator[str]:
    """What was read, each file of it where it is now; `InputError` for one that is gone, or another one."""
    if given.only is not None and not told.files:
        raise InputError(f"{run.name} is of a text: leave --image and --audio out")
    if told.read is None and told.token_ids:
        raise InputError(f"{run.name} does not say what was read: ask for it anew")
    for word in told.read or ():
        if word not in told.files:
            yield word
            continue
        places = [each for each in (given.only, run.parent / word, Path(word)) if each is not None]
        there = next((each for each in places if each.is_file()), None)
        if there is None:
            raise InputError(
                f"{word} is neither beside {run.name} nor here: put there the file that was read"
            )
        if (digest := incoming.sha256(there)) != told.files[word]:
            raise InputError(
                f"{there} is not the file that was read: its sha256 is {digest[:12]}, stored is "
                f"{told.files[word][:12]}"
            )
        yield str(there)


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
