"""Keys of the explorer, defined once for the bindings, the bottom line and the help card.

The card (`?`) explains signs and columns of the visible panes, then the keys that work.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnscope.explore import questions as ask
from attnscope.explore.questions import Beside
from attnscope.explore.showing import Find, head
from attnscope.explore.state import State, View
from attnscope.measures import MEASURES
from attnscope.render.kit.cells import DIM, HEADING
from attnscope.render.kit.words import certificate_words, head_of, verdict_words
from attnscope.render.sheet.blocks import Rows, flat
from attnscope.render.sheet.table import meanings
from attnscope.render.sheets import sheet_of
from attnscope.results import HeadWeights, Result

_GAP = "  "
_BLANK = "the mask in place of this token, and what is expected there"
_OPEN = "open the first of the heads that were found, then the next"


@dataclass(frozen=True)
class Key:
    """A key binding: `keys` as Textual names them, `shown` as a person does.

    `short` is its text in the bottom line, where keys of smaller `rank` come first while there is room.
    """

    keys: str
    shown: str
    action: str
    does: str
    short: str = ""
    rank: int = 9


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
    Key("underscore", "_", "blank", _BLANK, "_ mask", 7),
    Key("m", "m", "measure", "colour the grid by the next measure", "m measure", 4),
    Key("M", "M", "measures", "choose among all measures"),
    Key("t", "t", "view('TERMS')", "the score of query and key by its parts, and back", "t parts", 5),
    Key("p", "p", "view('MAP')", "the map of queries and keys (t-SNE), and back", "p map", 6),
    Key("f", "f", "find", "which heads link query and key, beside shuffled texts", "f find", 1),
    Key("enter", "Enter", "open", _OPEN, "Enter opens", 0),
    Key("x", "x", "without", "take this head out or back: the prediction before and after", "x out", 1),
    Key("b", "b", "beside", "a second sentence beside the first, and what differs", "b beside", 6),
    Key("w", "w", "words", "by words, or by tokens again"),
    Key("S", "S", "special", "special tokens: shown, hidden, left out of the rows"),
    Key("K", "K", "tower", "the next kind or tower of this model", "K tower", 2),
    Key("s", "s", "write", "write what is seen to a page for the browser, under a new name", "s page", 3),
    Key("o", "o", "save", "write it under another name: .png .svg .pdf .html .npz .json .csv", "o figure", 6),
    Key("y", "y", "command", "the command line that makes the same view", "y command", 8),
    Key("c", "c", "proof", "the certificate in full"),
    Key("pageup", "PgUp", "page(-1)", "scroll the largest pane up"),
    Key("pagedown", "PgDn", "page(1)", "scroll it down"),
    Key("escape", "Esc", "matrix", "back to the matrix", "Esc back", 0),
    Key("question_mark", "?", "keys", "this card: what is on the screen, and the keys", "? help", -1),
    Key("q", "q", "leave", "quit", "q quit", -1),
    Key("ctrl+c", "Ctrl-C", "interrupt", "interrupt: quit at once"),
)


def working(state: State) -> list[Key]:
    """Keys that do something in this state."""
    idle = {
        "blank": not state.scene.mask,
        "open": state.view is not View.FOUND,
        "tower": len(state.scene.towers) < 2,
        "matrix": state.view is View.MATRIX,
    }
    return [key for key in KEYS if not idle.get(key.action)]


def hints(state: State, width: int) -> str:
    """The most important keys that fit into `width` cells, in the order of `KEYS`."""
    told = [key for key in working(state) if key.short]
    kept: list[Key] = []
    for key in sorted(told, key=lambda each: each.rank):
        if len(_GAP.join(each.short for each in (*kept, key))) > width:
            break
        kept.append(key)
    return _GAP.join(key.short for key in told if key in kept)


_WIDE = 13  # cells of the column that names a sign or a key
_THEN = " · "
Entry = tuple[str, str]


def card(state: State, find: Find, panes: Collection[str]) -> RenderableType:
    """Help card: signs and columns of the shown `panes`, then the working keys."""
    signs = [*_of_head(state, find), *_of_grid(state, find, panes), *_of_main(state, find)]
    signs += [*_of_bars(state, find, panes), *_of_answer(state, panes)]
    keys = [(key.shown, key.does) for key in working(state)]
    keys.append(("mouse", "a head, a pair or a token: goes there; the wheel moves on"))
    return Group(Text("on the screen", HEADING), _listed(signs), Text("\nkeys", HEADING), _listed(keys))


def _listed(entries: list[Entry]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=_WIDE)
    table.add_column(ratio=1)
    for name, meaning in entries:
        table.add_row(Text(name), Text(meaning, DIM))
    return table


def _of_head(state: State, find: Find) -> Iterator[Entry]:
    yield state.name, f"layer {state.layer}, head {state.head}; both count from 0"
    shown = head(state, find)
    if shown is not None:
        certificate = head_of(shown).certificate
        rests = certificate_words(certificate).partition(_THEN)[2] or certificate.reason
        yield verdict_words(certificate.verdict), f"{rests} (c: in full)"
    named = state.scene.queries.named(state.query)
    yield "looks at", f"the stronger its colour, the more weight {named} gives a token (a query to its keys)"
    yield "looked at by", "the same column-wise: the stronger, the more weight that token gives"


def _of_grid(state: State, find: Find, panes: Collection[str]) -> Iterator[Entry]:
    described = MEASURES[state.measure].description
    yield "heads", f"a row a layer, a cell a head, coloured by {state.measure}: {described.meaning}"
    yield "[]", "the head that is looked at"
    if state.removed:
        yield "××", "a head that was taken out"
    if any(find(question) is None for question in ask.grid_of(state)):
        yield "…", "not measured yet"
    if "ranking" in panes:
        yield (state.measure, "heads in this order; last those that position or special tokens explain")


def _of_main(state: State, find: Find) -> Iterator[Entry]:
    answer = find(ask.view_of(state))
    match state.view:
        case View.MATRIX if state.scene.medium:
            yield (
                str(state.scene.medium),
                "brighter is more weight; beside it the largest weights of the query",
            )
        case View.MATRIX:
            shown = head(state, find)
            blank = "" if shown is None or head_of(shown).allowed.all() else "; blank is masked"
            yield "weights", f"a row looks at the columns, and adds up to 1{blank}"
            yield "▸", "the query that is looked at; arrows move it"
            yield "inverse", "the key (narrow: [] or ◆): the strongest of that row, or where you moved"
            if state.words:
                yield (
                    "by words",
                    "pieces of a word joined: the sum over those of a key, of a query the mean",
                )
        case View.MAP:
            yield "● ○ ◉", "a query, a key, both in one cell; named are the query and its strongest keys"
        case View.WITHOUT:
            yield "random", "other heads of the same layer, drawn by lot, to compare with"
    if isinstance(answer, Beside):
        answer = answer.difference
    if state.view is not View.MATRIX and isinstance(answer, Result) and not isinstance(answer, HeadWeights):
        rows = (each for one in sheet_of(answer).blocks for each in flat(one) if isinstance(each, Rows))
        columns = [column for each in rows for column in each.table.headed]
        for said in meanings(columns):
            name, _, meaning = said.partition(": ")
            if meaning:
                yield name, meaning


def _of_bars(state: State, find: Find, panes: Collection[str]) -> Iterator[Entry]:
    if "bars" in panes and head(state, find) is not None:
        yield "weight", "what the query gives to that key: 0 to 1"
        if not state.words:
            yield "scaled", "what entered the softmax: query times key, divided and with its bias"
        yield "full bar", "the weight that a bar over the whole width stands for"
    if "parts" in panes:
        yield "q·k", "the score by its parts: the product of query and key before it is divided"


def _of_answer(state: State, panes: Collection[str]) -> Iterator[Entry]:
    if "predicts" not in panes:
        return
    if not state.removed:
        yield "probability", "what the model itself gives that token"
        return
    yield "before", "the probability with all heads"
    yield "without", "the same with the outputs of these heads replaced by zeros; bold: now the likeliest"
