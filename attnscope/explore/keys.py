"""Every key once: what it does, when it does that, and how it is told: for bindings, bottom line, card."""

from collections.abc import Callable
from dataclasses import dataclass

from attnscope.explore.state import State, View

_GAP = "  "


@dataclass(frozen=True)
class Key:
    """`keys` as Textual names them, `shown` as a person does; `works` says whether it does anything now.

    `short` stands in the bottom line: first come those of the smallest `rank`, as far as there is room.
    """

    keys: str
    shown: str
    action: str
    does: str
    short: str = ""
    rank: int = 9
    works: Callable[[State], bool] = lambda state: True


KEYS = (
    Key("tab", "Tab", "app.focus_next", "go to the next pane: grid, matrix, sentence"),
    Key("up,k", "↑ k", "move(0,-1)", "in the grid the layer above; else the query before"),
    Key("down,j", "↓ j", "move(0,1)", "in the grid the layer below; else the next query"),
    Key("left,h", "← h", "move(-1,0)", "in the grid the head before; in the matrix the key before"),
    Key("right,l", "→ l", "move(1,0)", "in the grid the next head; in the matrix the next key"),
    Key("left_square_bracket", "[", "head(-1,0)", "the layer above, wherever one stands"),
    Key("right_square_bracket", "]", "head(1,0)", "the layer below"),
    Key("comma", ",", "head(0,-1)", "the head before"),
    Key("full_stop", ".", "head(0,1)", "the next head"),
    Key("slash", "/", "jump", "jump to a head: 3.11", "/ jump", 5),
    Key("e", "e", "edit", "edit the sentence and read it again", "e edit", 2),
    Key(
        "underscore",
        "_",
        "blank",
        "the mask in place of this token, and what is expected there",
        "_ mask",
        7,
        lambda state: bool(state.scene.mask),
    ),
    Key("m", "m", "measure", "colour the grid by the next measure", "m measure", 4),
    Key("M", "M", "measures", "choose among all measures"),
    Key("t", "t", "view('TERMS')", "the score of query and key by its parts, and back", "t parts", 5),
    Key("p", "p", "view('MAP')", "the map of queries and keys (t-SNE), and back", "p map", 6),
    Key("f", "f", "find", "which heads link query and key, beside shuffled texts", "f find", 1),
    Key(
        "enter",
        "Enter",
        "open",
        "open the first of the heads that were found, then the next",
        "Enter opens",
        0,
        lambda state: state.view is View.FOUND,
    ),
    Key("x", "x", "without", "take this head out or back: the prediction before and after", "x out", 1),
    Key("b", "b", "beside", "a second sentence beside the first, and what differs", "b beside", 6),
    Key("w", "w", "words", "by words, or by tokens again"),
    Key("S", "S", "special", "special tokens: shown, hidden, left out of the rows"),
    Key(
        "K",
        "K",
        "tower",
        "the next kind or tower of this model",
        "K tower",
        2,
        lambda state: len(state.scene.towers) > 1,
    ),
    Key("s", "s", "write", "write what is seen to a page for the browser, under a new name", "s page", 3),
    Key("o", "o", "save", "write it under another name: .png .svg .pdf .html .npz .json .csv", "o figure", 6),
    Key("y", "y", "command", "the command line that makes the same view", "y command", 8),
    Key("c", "c", "proof", "the certificate in full"),
    Key("pageup", "PgUp", "page(-1)", "scroll the largest pane up"),
    Key("pagedown", "PgDn", "page(1)", "scroll it down"),
    Key(
        "escape",
        "Esc",
        "matrix",
        "back to the matrix",
        "Esc back",
        0,
        lambda state: state.view is not View.MATRIX,
    ),
    Key("question_mark", "?", "keys", "this card: what is on the screen, and the keys", "? help", -1),
    Key("q", "q", "leave", "quit", "q quit", -1),
    Key("ctrl+c", "Ctrl-C", "interrupt", "interrupt: quit at once"),
)


def working(state: State) -> list[Key]:
    """Those that do something now."""
    return [key for key in KEYS if key.works(state)]


def hints(state: State, width: int) -> str:
    """The keys that matter most in so many cells, whole, in the order of all keys."""
    told = [key for key in working(state) if key.short]
    kept: list[Key] = []
    for key in sorted(told, key=lambda each: each.rank):
        if len(_GAP.join(each.short for each in (*kept, key))) > width:
            break
        kept.append(key)
    return _GAP.join(key.short for key in told if key in kept)
