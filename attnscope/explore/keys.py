"""Every key once: what it does and how it is told, for bindings, the bottom line and the key card."""

from dataclasses import dataclass

from rich.text import Text

from attnscope.render.kit.cells import HEADING
from attnscope.render.kit.labels import left

_WIDE = 8  # cells of the column that names a key


@dataclass(frozen=True)
class Key:
    """`keys` as Textual names them, `shown` as a person does; `short` stands in the bottom line."""

    keys: str
    shown: str
    action: str
    does: str
    short: str = ""


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
    Key("slash", "/", "jump", "jump to a head: 3.11", "/ jump"),
    Key("e", "e", "edit", "edit the sentence and read it again", "e edit"),
    Key("underscore", "_", "blank", "a mask in place of this token, and what is expected there", "_ mask"),
    Key("m", "m", "measure", "colour the grid by the next measure", "m measure"),
    Key("M", "M", "measures", "choose among all measures"),
    Key("t", "t", "view('TERMS')", "the score of query and key by its parts, and back", "t parts"),
    Key("p", "p", "view('MAP')", "the map of queries and keys (t-SNE), and back", "p map"),
    Key("f", "f", "find", "which heads link query and key, beside control texts", "f find"),
    Key("enter", "Enter", "open", "in what was found: the next head, farthest above controls"),
    Key("x", "x", "without", "take this head out or back: what the prediction becomes", "x without"),
    Key("b", "b", "beside", "a second sentence beside the first, and what differs", "b beside"),
    Key("w", "w", "words", "by words, or by tokens again"),
    Key("S", "S", "special", "special tokens: shown, hidden, left out of the rows"),
    Key("K", "K", "tower", "the next kind or tower of a model that has several"),
    Key("s", "s", "save", "save what is on the screen: .png .svg .pdf .npz .json .csv", "s save"),
    Key("y", "y", "command", "the command line that makes the same view", "y command"),
    Key("c", "c", "proof", "the certificate in full"),
    Key("pageup", "PgUp", "page(-1)", "scroll the largest pane up"),
    Key("pagedown", "PgDn", "page(1)", "scroll it down"),
    Key("escape", "Esc", "matrix", "back to the matrix"),
    Key("question_mark", "?", "keys", "this card", "? keys"),
    Key("q", "q", "leave", "quit", "q"),
    Key("ctrl+c", "Ctrl-C", "interrupt", "interrupt: quit at once"),
)


def card_of_keys() -> Text:
    """One line a key, and what the mouse does."""
    lines = [Text.assemble((left(key.shown, _WIDE), HEADING), key.does) for key in KEYS]
    lines.append(
        Text.assemble(
            (left("mouse", _WIDE), HEADING), "a head, a pair or a token: goes there; the wheel moves on"
        )
    )
    return Text("\n").join(lines)
