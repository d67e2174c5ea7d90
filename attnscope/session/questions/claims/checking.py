"""A stored run made anew under this installation, and held against the file."""

from dataclasses import dataclass, replace
from pathlib import Path

from attnscope.analysis.difference.checking import checked_head, checked_heads
from attnscope.analysis.difference.matrices import head_in
from attnscope.errors import InputError
from attnscope.measures import MEASURES
from attnscope.results import Check, HeadWeights, Kind, Overview, Provenance, load
from attnscope.session.entering import read_inputs
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened, Purpose, open_model
from attnscope.session.questions.heads import read_overview, read_weights
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs, ModelRequest, Wanted
from attnscope.tokens import Tokens, printable
from attnscope.vocabulary import KERNELS, Route


@dataclass(frozen=True)
class Leave:
    """What a file cannot allow by itself, and where to run in place of the stored device and model."""

    model: str | None = None
    device: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False


def check_file(path: Path, leave: Leave, listener: Listener) -> Check:
    """Run what `path` holds once more and compare; `InputError` for what cannot be run again."""
    stored, name = load(path), printable(path.name)
    if isinstance(stored, Overview):
        shown: Overview | HeadWeights = stored.tokens or stored
    elif (head := head_in(stored)) is not None:
        shown = head
    else:
        raise InputError(f"{name} holds no weights of heads: give what `attnscope heads -o FILE.npz` wrote")
    if isinstance(shown, Overview) and shown.weights is None:
        raise InputError(f"{name} leaves the weights of its heads out: give the npz")
    reading, anew, changes = _anew(shown, name, leave, listener)
    before = _layers_before(reading, shown.kind)
    if isinstance(shown, Overview):
        assert isinstance(anew, Overview), "asked as it was stored"
        heads = checked_heads(shown, anew, before)
    else:
        assert isinstance(anew, HeadWeights), "asked as it was stored"
        heads = [checked_head(shown, anew, before)]
    changes += _changes(shown.provenance, anew.provenance)
    return Check(name, tuple(heads), tuple(changes), shown.provenance, anew.provenance)


def _layers_before(reading: Reading, kind: Kind) -> int:
    """How many layers of an encoder a decoder's attention has behind it."""
    if not reading.model.writes or kind is Kind.ENCODER:
        return 0
    return max((len(tower.layers) for tower in reading.model.towers if tower.kind is Kind.ENCODER), default=0)


def _anew(
    shown: Overview | HeadWeights, name: str, leave: Leave, listener: Listener
) -> tuple[Reading, Overview | HeadWeights, list[str]]:
    """The same question asked once more."""
    _check_is_text(shown, name)
    request, wanted = _request(shown.provenance, leave), _wanted(shown)
    by_ids, texts = Inputs(ids=shown.provenance.token_ids), _texts(shown, writes=False)
    first = by_ids if texts is None else _of_texts(by_ids, texts)
    opened = open_model(request, first, wanted, Purpose.ATTENTION, listener)
    assert opened.chosen is not None, "heads are wanted"
    writes = opened.model.writes
    reading, changes = _read(opened, shown, _with_target(by_ids, shown, writes), name, listener)
    if isinstance(shown, Overview):
        known = tuple(measure for measure in shown.scores if measure in MEASURES)
        return reading, read_overview(reading, opened.chosen, known or ("entropy",)), changes
    return reading, read_weights(reading, opened.chosen), changes


def _check_is_text(shown: Overview | HeadWeights, name: str) -> None:
    ids = shown.provenance.token_ids
    if not ids or min(ids) < 0 or shown.query_tokens.stretches or shown.key_tokens.stretches:
        raise InputError(f"{name} is of a picture or a sound, which no file holds: it cannot be run again")


def _request(stored: Provenance, leave: Leave) -> ModelRequest:
    kernel = next((name for name in KERNELS if name in stored.kernel.split(", ")), "eager")
    return ModelRequest(
        model=leave.model or stored.model,
        device=leave.device or stored.device,
        dtype=stored.dtype,
        revision=None if leave.model else stored.revision,
        trust_remote_code=leave.trust_remote_code,
        allow_pickle=leave.allow_pickle,
        attention=kernel,
        ignore_unread=bool(stored.unread),
        adapter=stored.adapter,
    )


def _wanted(shown: Overview | HeadWeights) -> Wanted:
    routes = {str(route): route.option for route in Route}
    return Wanted(
        layer=list(shown.layers) if isinstance(shown, Overview) else shown.layer,
        head=list(shown.heads) if isinstance(shown, Overview) else shown.head,
        kind=shown.kind.value,
        tower=shown.tower or None,
        block=0 if isinstance(shown, Overview) else shown.block,
        route=routes.get(shown.provenance.route),
    )


def _of_texts(by_ids: Inputs, texts: tuple[str, ...]) -> Inputs:
    return replace(by_ids, ids=None, text=texts[0], pair=texts[1] if len(texts) > 1 else None)


def _with_target(inputs: Inputs, shown: Overview | HeadWeights, writes: bool) -> Inputs:
    """With what the decoder read, where there is one and it was looked at."""
    if not writes or shown.kind is Kind.ENCODER:
        return inputs
    return replace(inputs, target_ids=shown.query_tokens.ids)


def _read(
    opened: Opened, shown: Overview | HeadWeights, by_ids: Inputs, name: str, listener: Listener
) -> tuple[Reading, list[str]]:
    """The stored text where it is known and gives the stored tokens, else the tokens themselves."""
    stored, texts = shown.provenance.token_ids, _texts(shown, opened.model.writes)
    changes = []
    if texts is not None:
        reading = _read_text(opened, _of_texts(by_ids, texts), listener)
        if reading is not None and reading.encoded.tokens.ids == stored:
            return reading, []
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
    """The text, or the two of a pair, that were read, where the tokens tell and nothing else made them."""
    tokens: Tokens = shown.key_tokens if shown.kind is Kind.CROSS else shown.query_tokens
    hidden = writes and shown.kind is Kind.DECODER
    made = tokens.written or tokens.words_given or tokens.numbers
    return None if hidden or made or not tokens.texts or not all(tokens.texts) else tokens.texts


def _changes(stored: Provenance, now: Provenance) -> list[str]:
    """What of where the numbers come from is not what it was."""
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


def _short(told: str | None) -> str:
    return "none" if told is None else told[:19] if told.startswith("sha256:") else printable(told)
