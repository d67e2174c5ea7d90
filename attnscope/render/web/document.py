"""Builds the content of a page for each kind of result: heads, numbers, map, and the first view."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attnscope.register import kind_of, there
from attnscope.render.kit.cells import settled
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words import model_words, spans, weights_words
from attnscope.render.sheet.said import attention, grid_size
from attnscope.render.sheets import Focus, sheet_of
from attnscope.render.sheets.projection import DISCLAIMER, points_words, said
from attnscope.render.sheets.thumbnails import pooled_words
from attnscope.render.web import readings as sides
from attnscope.render.web.blocks import Blocks, of_picture, of_sound, short
from attnscope.render.web.passage import Told
from attnscope.render.web.passage import told as told_first
from attnscope.render.web.readings import first_token
from attnscope.render.web.room import Beside, Laid
from attnscope.results import (
    HeadTerms,
    HeadView,
    HeadWeights,
    Overview,
    PictureAttention,
    PictureHeads,
    Projection,
    Result,
    SoundAttention,
    SoundHeads,
    Special,
    Thumbnails,
)
from attnscope.results.base.evidence import Opening
from attnscope.vocabulary import Unit

BESIDE = 260  # tokens up to which a view stands under the text, and not in its place


@dataclass
class Document:
    """Content of a page: its readings, map, picture or sound, and what it opens on.

    `opener` is the command that opens a head, with `{layer}` and `{head}` in it. `both` says which heads of
    two readings belong together, and whether their tokens do. `told` replaces the sheet's answer at the top;
    `first` is whether the text or the sheet stands above. `below` are views that follow the chosen one.
    """

    blocks: Blocks
    heading: str = ""
    opener: str = ""
    readings: list[sides.Reading] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)
    map: dict[str, Any] | None = None
    picture: dict[str, Any] | None = None
    sound: dict[str, Any] | None = None
    both: dict[str, Any] | None = None
    says: list[str] = field(default_factory=list)
    told: Told | None = None
    below: tuple[str, ...] = ()
    first: str = "text"

    def tokens(self, side: str) -> dict[str, Any] | None:
        """The tokens of one side of the first reading, or None."""
        return None if not self.readings else self.readings[0][side] or self.readings[0]["queries"]


def told(*parts: str) -> str:
    """The non-empty `parts` in one line."""
    return " · ".join(part for part in parts if part)


def opens(made: Document, layer: int, head: int, view: str = "", **more: Any) -> None:
    """Set the head and view that the page opens on; earlier choices of these stay."""
    made.opening = {"layer": layer, "head": head, "view": view or weights_view(made), **made.opening, **more}


def opened(made: Document, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A sheet's opening choice with its query and key as token positions."""
    words, special = asked.get("words", False), asked.get("special", Special.SHOW)
    places = {
        name: first_token(asked[name], made.tokens(side), words, Special(special))
        for side, name in (("queries", "query"), ("keys", "key"))
        if name in asked
    }
    return {**asked, **places}


def weights_view(made: Document) -> str:
    """`text` for a long text, else `matrix`."""
    both = (made.tokens(side) for side in ("queries", "keys"))
    return "text" if max((len(side["names"]) for side in both if side), default=0) > BESIDE else "matrix"


def all_heads(made: Document, beside: Beside, by: Unit = Unit.WORD) -> None:
    """Add the weights of all heads, or of some in full, for a result that holds none itself.

    `by` is the unit that its tokens can be joined to.
    """
    (overview,) = beside.heads or (None,)
    if isinstance(overview, Overview):
        made.readings.append(sides.of_overview(overview, made.blocks, beside.full, by=by))
    elif beside.full:
        made.readings.append(sides.of_heads(beside.full, made.blocks, by=by))


STAGES = {"scores": "parts", "scaled": "parts", "q": "product", "k": "product"}


def document(result: Result, focus: Focus, beside: Beside) -> Document:
    """Build the page's content for any result."""
    made = Document(Blocks())
    kind = kind_of(type(result))
    if kind is not None:
        parts = there(kind.page) if kind.page else of_sheet
    else:
        parts = next((_PARTS[each] for each in type(result).__mro__ if each in _PARTS), of_sheet)
    parts(made, result, beside)
    if isinstance(result, HeadView) and spans(result) and result.special is Special.SHOW:
        # a page has its tokens one by one: on the first of a span that was named
        key = None if focus.key is None else result.key_groups[focus.key][0]
        focus = replace(focus, queries=tuple(result.query_groups[row][0] for row in focus.queries), key=key)
    asked = {"query": focus.query, "key": focus.key}
    if any(value is not None for value in asked.values()):
        made.opening |= asked
    if focus.stage != "weights":
        made.opening["view"] = STAGES.get(focus.stage, "matrix")
    if focus.scale != "sqrt":
        made.opening["scale"] = focus.scale.value
    return made


def of_sheet(made: Document, found: Any, beside: Beside) -> None:
    """Build the page of a sheet, beside it the weights it is about, opened on a head."""
    sheet = sheet_of(found)
    made.first = "sheet"
    all_heads(made, beside, getattr(found, "by", Unit.WORD))
    made.heading = told(sheet.title, sheet.setting)
    if sheet.opens:
        made.opener = sides.opener(found)
        opens(made, **opened(made, sheet.opens))


def of_head(made: Document, head: HeadWeights, beside: Beside, by: Unit = Unit.WORD) -> None:
    made.heading = told(head.name, attention(head.kind, head.tower), model_words(head.provenance))
    made.readings.append(sides.of_heads([head], made.blocks, by=by))
    made.says += weights_words(head)
    opens(made, head.layer, head.head, **opened(made, sheet_of(head).opens))


def of_view(made: Document, view: HeadView, beside: Beside) -> None:
    of_head(made, view.head, beside, view.by)
    made.opening |= opened(made, sheet_of(view).opens)


def of_terms(made: Document, terms: HeadTerms, beside: Beside) -> None:
    of_head(made, terms.head, beside)
    made.opening["view"] = "parts"


def of_overview(made: Document, overview: Overview, beside: Beside) -> None:
    heads = f"{counted(len(overview.layers), 'layer')} x {counted(len(overview.heads), 'head')}"
    made.heading = told(heads, attention(overview.kind, overview.tower), model_words(overview.provenance))
    made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    looked: dict[str, Any] = {"words": overview.by.joins, "special": overview.special.value}
    found = overview.tokens or overview
    if overview.aim is not None:
        query, key = overview.aim
        i, j = _strongest(overview)
        if overview.aim_spans:  # a page has no spans: it opens on the first token of each
            query, *keys = (span[0] for span in overview.aim_spans)
            key = keys[0] if keys else None
    else:
        opening = beside.opening or Opening(overview.most_telling())
        link = opening.link
        if found.query_tokens.texts and found.key_tokens.texts:
            made.told = told_first(overview, opening)
        i, j = _strongest(overview) if link is None else (link.layer, link.head)
        query, key = (int(at) for at in found.strongest[i, j]) if link is None else (link.query, link.key)
    there = {"query": query, "key": key}
    looked |= {name: at for name, at in there.items() if at is not None and at >= 0}
    opens(made, overview.layers[i], overview.heads[j], **looked)


def _strongest(overview: Overview) -> tuple[int, int]:
    values = overview.strongest_weight if overview.aim is None else overview.main.values
    i, j = divmod(int(np.nan_to_num(values).argmax()), len(overview.heads))
    return i, j


def of_thumbnails(made: Document, small: Thumbnails, beside: Beside) -> None:
    size, where = grid_size(small.layers, small.heads), attention(small.kind, small.tower)
    made.heading = told(size, where, model_words(small.provenance))
    all_heads(made, beside, small.by)
    first = beside.full[0] if beside.full else None
    opened = (small.layers[0], small.heads[0]) if first is None else (first.layer, first.head)
    if made.readings:  # the weights that the thumbnails were made of
        opens(made, *opened, "heads", words=small.by.joins, special=small.special.value)
        return
    made.readings.append(sides.of_thumbnails(small, made.blocks))
    if cell := pooled_words(small):
        made.says.append(f"a cell is {cell}")
    opens(made, *opened, "heads")


def of_map(made: Document, found: Projection, beside: Beside) -> None:
    of_head(made, found.head, beside, Unit.WORD if found.view is None else found.view.by)
    made.map = known_map(found)
    made.opening["view"] = "map"
    if found.view is not None:
        made.opening |= {"words": found.view.by.joins, "special": found.view.special.value}


def of_medium(made: Document, found: Laid, beside: Beside) -> None:
    """Open a page of a picture or sound on the head and on the patch or frame with the largest weight."""
    weights = found.weights.reshape(*found.weights.shape[: -found.gaze.keys.ndim], -1)
    *place, at = np.unravel_index(int(np.nan_to_num(weights).argmax()), weights.shape)
    if isinstance(found, PictureAttention | SoundAttention):
        of_head(made, found.head, beside)
    else:
        of_overview(made, found.overview, beside)
        made.told = None
        layers, heads = found.overview.layers, found.overview.heads
        made.opening |= {"layer": layers[place[0]], "head": heads[place[1]]}
    query = found.gaze.query
    made.opening |= {"query": query, "key": None if query is None else int(found.gaze.keys.ravel()[at])}
    show_medium(made, found)


def show_medium(made: Document, found: Laid) -> None:
    if isinstance(found, PictureAttention | PictureHeads):
        made.picture = of_picture(found)
    else:
        made.sound = of_sound(found, made.blocks)


def known_map(found: Projection) -> dict[str, Any]:
    """Points of a map with names and weights; a point of a view stands for a group of tokens."""
    view = found.view
    rows = [[i] for i in range(len(found.query_tokens))] if view is None else view.query_groups
    say = said(found)
    says = [say("trust_says"), say("correlation_says"), ", ".join(say.lines("settings"))]
    return {
        "queries": short(found.queries),
        "keys": short(found.keys),
        "queryNames": [settled(name) for name in found.query_tokens.names],
        "keyNames": [settled(name) for name in found.key_tokens.names],
        "rows": rows,
        "weights": [
            [weight if allowed else None for weight, allowed in zip(*row, strict=True)]
            for row in zip(short(found.weights), found.allowed.tolist(), strict=True)
        ],
        "says": [each for each in (*says, *points_words(found), DISCLAIMER) if each],
    }


# results that belong to no verb and have a page of their own
_PARTS: dict[type, Callable[[Document, Any, Beside], None]] = {
    HeadWeights: of_head,
    HeadView: of_view,
    HeadTerms: of_terms,
    Overview: of_overview,
    Thumbnails: of_thumbnails,
    Projection: of_map,
    PictureAttention: of_medium,
    PictureHeads: of_medium,
    SoundAttention: of_medium,
    SoundHeads: of_medium,
}
