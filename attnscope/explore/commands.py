"""The command line that makes what is on the screen, and what of it a file holds."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from attnscope.explore.state import State, View
from attnscope.printable import word
from attnscope.render.focus import Focus
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.vocabulary import Kind, Special


def command(state: State, request: ModelRequest, inputs: Inputs, wanted: Wanted) -> str:
    """One line for a shell; of two sentences side by side three commands in it."""
    layer, head = (str(number) for number in state.place)
    place = ["--layer", layer, "--head", head]
    rest = [*_model(request), *_attention(state, wanted)]
    read = [*_writing(state, inputs), *_read(state.scene.text, inputs)]
    looking = [*(["--words"] if state.words else []), *_special(state)]
    query = ["--query", state.scene.queries.labels[state.query]]
    key = [] if state.key is None else ["--key", state.scene.keys.labels[state.key]]
    match state.view:
        case View.TERMS:
            return _line("heads", *read, *rest, *place, "--terms", *query, *key)
        case View.MAP:
            return _line("tsne", *read, *rest, *place, *query, *looking)
        case View.FOUND if state.sought is not None:
            ends = state.scene.queries.labels, state.scene.keys.labels
            between = ["--from", ends[0][state.sought[0]], "--to", ends[1][state.sought[1]]]
            return _line("find", *read, *rest, *between)
        case View.WITHOUT if state.removed:
            heads = ",".join(f"L{removed[0]}H{removed[1]}" for removed in state.removed)
            whole = "".join(state.scene.queries.texts) if inputs.goes_on else state.scene.text
            return _line("ablate", *_read(whole, inputs), *rest, "--heads", heads)
        case View.BESIDE if state.other is not None:
            first = _line("heads", *read, *rest, *place, "-o", "a.npz")
            other = [*_writing(state, inputs), *_read(state.other, inputs)]
            second = _line("heads", *other, *rest, *place, "-o", "b.npz")
            return f"{first} && {second} && {_line('compare', 'a.npz', 'b.npz')}"
    if state.scene.medium:
        return _line("heads", *read, *rest, *place, *query)
    return _line("heads", *read, *rest, *place, *query, *key, *looking)


def focus(state: State, row: int | None, column: int | None) -> Focus:
    """What of the result a picture shows: the whole of a matrix, of the other views the query."""
    if state.view is View.TERMS or (state.view is View.MAP and row is not None):
        assert row is not None, "a query of the head itself"
        return Focus(queries=(row,), key=column if state.view is View.TERMS else None)
    return Focus()


def file_name(state: State, suffix: str) -> str:
    """What the file is called unless something else is written: `L3H11.png`, `L3H11-map.html`."""
    of = {
        View.MATRIX: "",
        View.TERMS: "-parts",
        View.MAP: "-map",
        View.FOUND: "-found",
        View.WITHOUT: "-without",
        View.BESIDE: "-beside",
    }[state.view]
    return f"L{state.layer}H{state.head}{of}{suffix}"


def unused(target: Path) -> Path:
    """The same name, or with the first number behind it that no file has."""
    numbered = (target.with_stem(f"{target.stem}-{number}") for number in count(2))
    return target if not target.exists() else next(each for each in numbered if not each.exists())


def result_of(answer: Any) -> Any:
    """What of an answer can be saved: of two sentences their difference, or the second one's head."""
    from attnscope.explore.questions import Beside

    return (answer.difference or answer.other) if isinstance(answer, Beside) else answer


def _line(name: str, *parts: str) -> str:
    """A text that begins with a dash stands last, behind two of them."""
    words = list(parts)
    if "--" in words:
        at = words.index("--")
        words = [*words[:at], *words[at + 2 :], *words[at : at + 2]]
    return " ".join(["attnscope", name, *map(word, words)])


def _writing(state: State, inputs: Inputs) -> list[str]:
    if state.scene.tower.kind is Kind.ENCODER:
        return []
    most = inputs.writing.generate
    return [] if most is None else ["--generate", str(most)]


def _read(text: str, inputs: Inputs) -> list[str]:
    parts = [text] if text and inputs.ids is None and inputs.chat is None else []
    if text.startswith("-") and parts:
        parts = ["--", text]
    given = {
        "--pair": inputs.pair,
        "--target": inputs.target,
        "--target-ids": inputs.target_ids,
        "--ids": inputs.ids,
        "--vocab": inputs.vocab,
        "--image": inputs.image,
        "--audio": inputs.audio,
        "--chat": None if inputs.chat is None else inputs.chat.file or "your-chat.json",
        "--system": inputs.system,
    }
    for option, value in given.items():
        if value is not None:
            shown = str(value) if not isinstance(value, list | tuple) else ",".join(map(str, value))
            parts = [option, shown, *parts]
    return [*(["--split"] if inputs.split else []), *(["--truncate"] if inputs.truncate else []), *parts]


def _model(request: ModelRequest) -> list[str]:
    given = {
        "-m": (request.model, None),
        "--revision": (request.revision, None),
        "--device": (request.device, "auto"),
        "--dtype": (request.dtype, "float32"),
        "--attn": (request.attention, None),
        "--adapter": (request.adapter, None),
        "--device-map": (request.device_map, None),
        "--max-memory": (request.max_memory, None),
    }
    parts = [
        part for option, (value, usual) in given.items() if value != usual for part in (option, str(value))
    ]
    flags = {
        "--trust-remote-code": request.trust_remote_code,
        "--allow-pickle": request.allow_pickle,
        "--ignore-unread": request.ignore_unread,
    }
    return parts + [flag for flag, there in flags.items() if there]


def _attention(state: State, wanted: Wanted) -> list[str]:
    scene = state.scene
    parts = [] if wanted.route is None else ["--route", wanted.route]
    parts += ["--block", str(wanted.block)] if wanted.block else []
    if len(scene.towers) < 2:
        return parts
    alike = [tower for tower in scene.towers if tower.kind is scene.tower.kind]
    tower = [] if len(alike) == 1 else ["--tower", scene.tower.plain]
    return ["--kind", scene.tower.kind.value, *tower, *parts]


def _special(state: State) -> list[str]:
    return [] if state.special is Special.SHOW else ["--special", state.special.value]


def save(answer: Any, target: Path, focus: Focus, notice: Callable[[str], None]) -> list[Path]:
    """Write what the view shows; `InputError` for a suffix that it has no form for, before any work."""
    from attnscope.render.look import USUAL
    from attnscope.render.saving import check_targets, save

    os.environ["MPLBACKEND"] = "agg"  # no window is ever opened, whatever the environment asks for
    result = result_of(answer)
    check_targets([target], type(result))
    return list(save(result, target, focus, USUAL, notice))
