"""The command line that makes what is on the screen, and what of it a file holds."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from attnscope.explore.state import State, View
from attnscope.render.kit.words.command import asking, asking_of_text, label, looked_at
from attnscope.render.sheets import Focus
from attnscope.vocabulary import Unit


def command(state: State) -> str:
    """One line for a shell; of two sentences side by side three commands in it."""
    scene, place = state.scene, ["--layer", str(state.layer), "--head", str(state.head)]
    query = ["--query", label(scene.queries, state.query)]
    key = [] if state.key is None else ["--key", label(scene.keys, state.key)]
    looking = looked_at(Unit.WORD if state.words else Unit.TOKEN, state.special)
    match state.view:
        case View.TERMS:
            return asking(scene, "heads", *place, "--terms", *query, *key)
        case View.MAP:
            return asking(scene, "tsne", *place, *query) + looking
        case View.FOUND if state.sought is not None:
            ends = label(scene.queries, state.sought[0]), label(scene.keys, state.sought[1])
            return asking(scene, "find", "--from", ends[0], "--to", ends[1])
        case View.WITHOUT if state.removed:
            heads = "--heads", ",".join(f"L{removed[0]}H{removed[1]}" for removed in state.removed)
            if scene.queries.written:
                return asking_of_text("ablate", "".join(scene.queries.texts), scene.provenance, *heads)
            return asking(scene, "ablate", *heads)
        case View.BESIDE if state.other is not None:
            first = asking(scene, "heads", *place, "-o", "a.npz")
            second = asking_of_text("heads", state.other, scene.provenance, *place, "-o", "b.npz")
            return f"{first} && {second} && attnscope compare a.npz b.npz"
    if scene.medium:
        return asking(scene, "heads", *place, *query)
    return asking(scene, "heads", *place, *query, *key) + looking


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


def save(answer: Any, target: Path, focus: Focus, notice: Callable[[str], None]) -> list[Path]:
    """Write what the view shows, of two sentences their difference, or the second one's head.

    `InputError` for a suffix that it has no form for, before any work.
    """
    from attnscope.explore.questions import Beside
    from attnscope.render.look import USUAL
    from attnscope.render.saving import check_targets, save

    os.environ["MPLBACKEND"] = "agg"  # no window is ever opened, whatever the environment asks for
    result = (answer.difference or answer.other) if isinstance(answer, Beside) else answer
    check_targets([target], type(result))
    return list(save(result, target, focus, USUAL, notice))
