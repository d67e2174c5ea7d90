"""What a page shows of each kind of result: which heads, numbers, map, prediction; what opens first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnscope.render.ablation import words as ablation
from attnscope.render.comparison import words as comparison
from attnscope.render.corpus import apart_words as corpora
from attnscope.render.corpus import words as corpus
from attnscope.render.difference import words as difference
from attnscope.render.finding import words as finding
from attnscope.render.focus import Focus
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.kit.words.weights import overview_view_words, weights_words
from attnscope.render.thumbnails import words as thumbnails
from attnscope.render.web import answers, media, runs
from attnscope.render.web import corpora as of_texts
from attnscope.render.web import grids as numbers
from attnscope.render.web import readings as sides
from attnscope.render.web.beside import Beside
from attnscope.render.web.blocks import Blocks
from attnscope.render.web.tokens import first_token
from attnscope.results import (
    Ablation,
    Comparison,
    Corpus,
    CorpusDifference,
    Difference,
    Finding,
    HeadAttention,
    HeadTerms,
    HeadView,
    HeadWeights,
    Overview,
    PictureAttention,
    PictureHeads,
    Prediction,
    Projection,
    Report,
    Result,
    SoundAttention,
    SoundHeads,
    Thumbnails,
)

STAGES = {"weights": "sentence", "scores": "parts", "scaled": "parts", "q": "product", "k": "product"}


@dataclass
class Document:
    """The parts that a result has; `opening` is what is looked at first, `says` what stands beside numbers.

    `claims` are numbers that are not shown without all that is said of them; `opener` is the command that
    opens one of their heads, with `{layer}` and `{head}` in it. `both` says of two readings which heads of
    the one and the other belong together, and whether their tokens do.
    """

    blocks: Blocks
    heading: str = ""
    opener: str = ""
    claims: bool = False
    readings: list[sides.Reading] = field(default_factory=list)
    grids: list[numbers.Grid] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)
    map: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    picture: dict[str, Any] | None = None
    sound: dict[str, Any] | None = None
    both: dict[str, Any] | None = None
    says: list[str] = field(default_factory=list)

    def tokens(self, side: str) -> dict[str, Any] | None:
        """The tokens of one side of what is read, where there are any."""
        return None if not self.readings else self.readings[0][side] or self.readings[0]["queries"]


def document(result: Result, focus: Focus, beside: Beside) -> Document:
    """The parts of a page for any of `PAGED`."""
    made = Document(Blocks())
    next(_PARTS[kind] for kind in type(result).__mro__ if kind in _PARTS)(made, result, beside)
    _focused(made, focus)
    return made


def _told(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _focused(made: Document, focus: Focus) -> None:
    """A query and a key that were asked for, and a stage, are what opens."""
    asked = {"query": focus.query, "key": focus.key}
    made.opening |= {name: value for name, value in asked.items() if value is not None}
    if focus.stage != "weights":
        made.opening["view"] = STAGES.get(focus.stage, "sentence")
    if focus.scale != "auto":
        made.opening["scale"] = focus.scale.value


def _opens(made: Document, layer: int, head: int, view: str = "sentence", **more: Any) -> None:
    made.opening = {"layer": layer, "head": head, "view": view, "one": True, **made.opening, **more}


def _head(made: Document, head: HeadWeights, beside: Beside) -> None:
    made.heading = _told(head.name, where_words(head), model_words(head.provenance))
    made.readings.append(sides.of_heads([head], made.blocks))
    made.says += weights_words(head)
    _opens(made, head.layer, head.head)


def _view(made: Document, view: HeadView, beside: Beside) -> None:
    _head(made, view.head, beside)
    made.opening |= {"words": view.words, "special": view.special.value}


def _terms(made: Document, terms: HeadTerms, beside: Beside) -> None:
    _head(made, terms.head, beside)
    made.opening["view"] = "parts"


def _overview(made: Document, overview: Overview, beside: Beside) -> None:
    heads = f"{counted(len(overview.layers), 'layer')} x {counted(len(overview.heads), 'head')}"
    made.heading = _told(heads, where_words(overview), model_words(overview.provenance))
    made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    made.grids = numbers.of_overview(overview)
    made.says += overview_view_words(overview)
    looked: dict[str, Any] = {"words": overview.words, "special": overview.special.value}
    query, key = overview.aim or (None, None)
    looked |= {} if query is None else {"query": query} | ({} if key is None else {"key": key})
    _opens(made, *_first(overview, beside.full), **looked)


def _first(overview: Overview, full: Sequence[HeadAttention]) -> tuple[int, int]:
    """The head that opens: the first in full, else that of the strongest link."""
    if full:
        return full[0].layer, full[0].head
    i, j = divmod(int(overview.strongest_weight.argmax()), len(overview.heads))
    return overview.layers[i], overview.heads[j]


def _thumbnails(made: Document, small: Thumbnails, beside: Beside) -> None:
    made.heading = _told(thumbnails.subject(small), thumbnails.where(small), model_words(small.provenance))
    _all_heads(made, beside)
    first = beside.full[0] if beside.full else None
    opened = (small.layers[0], small.heads[0]) if first is None else (first.layer, first.head)
    if made.readings:  # the weights that the thumbnails were made of
        _opens(made, *opened, "heads", words=small.words, special=small.special.value)
        return
    made.readings.append(sides.of_thumbnails(small, made.blocks))
    if small.step > 1:
        made.says.append(f"a cell is the largest weight of {small.step} queries by {small.step} keys")
    _opens(made, *opened, "heads")


def _map(made: Document, found: Projection, beside: Beside) -> None:
    _head(made, found.head, beside)
    made.map = answers.of_map(found)
    made.opening["view"] = "map"
    if found.view is not None:
        made.opening |= {"words": found.view.words, "special": found.view.special.value}


def _report(made: Document, report: Report, beside: Beside) -> None:
    _map(made, report.projection, beside)
    made.prediction = None if report.prediction is None else answers.of_prediction(report.prediction)
    made.opening |= {"view": "sentence", "query": report.query}
    if report.view is not None:
        made.opening |= {"words": report.view.words, "special": report.view.special.value}


def _prediction(made: Document, found: Prediction, beside: Beside) -> None:
    made.heading = _told("prediction", model_words(found.provenance))
    made.prediction = answers.of_prediction(found)
    made.opening = {"view": "prediction"}


def _picture(made: Document, found: PictureAttention | PictureHeads, beside: Beside) -> None:
    _laid_over(made, found, beside)
    made.picture = media.of_picture(found)
    made.opening["view"] = "picture"


def _sound(made: Document, found: SoundAttention | SoundHeads, beside: Beside) -> None:
    _laid_over(made, found, beside)
    made.sound = media.of_sound(found, made.blocks)
    made.opening["view"] = "sound"


def _laid_over(made: Document, found: Any, beside: Beside) -> None:
    if isinstance(found, PictureAttention | SoundAttention):
        _head(made, found.head, beside)
    else:
        _overview(made, found.overview, beside)
    made.opening |= {"query": found.gaze.query, "one": False}


def _finding(made: Document, found: Finding, beside: Beside) -> None:
    _all_heads(made, beside)
    made.heading, made.claims = _told(finding.subject(found), model_words(found.provenance)), True
    made.opener = sides.opener(found)
    made.grids = numbers.of_finding(found)
    told = (
        finding.subject(found),
        finding.best_words(found),
        finding.above_words(found),
        finding.controls_words(found),
    )
    made.says += [each for each in (*told, *finding.remarks(found), *found.notes) if each]
    i, j = found.ranking[0] if found.ranking else (0, 0)
    sought: dict[str, Any] = {
        "query": first_token(found.sought.query, made.tokens("queries"), found.words, found.special),
        "key": first_token(found.sought.key, made.tokens("keys"), found.words, found.special),
    }
    looked: dict[str, Any] = {"words": found.words, "special": found.special.value}
    _opens(made, found.layers[i], found.heads[j], "heads", grid=1, **sought, **looked)


def _ablation(made: Document, found: Ablation, beside: Beside) -> None:
    _all_heads(made, beside)
    answer = f"answer {ablation.answer_words(found)}"
    made.heading, made.claims = _told(answer, ablation.done_words(found), model_words(found.provenance)), True
    made.opener = sides.opener(found)
    made.grids = numbers.of_ablation(found)
    words = ablation
    told = (
        words.answer_words,
        words.done_words,
        words.control_words,
        words.rounding_words,
        words.proof_words,
    )
    more = (words.total_words, words.group_words, words.estimate_words, words.legend_words)
    made.says += [said for each in (*told, *more) if (said := each(found))] + list(found.notes)
    if found.heads:
        _opens(made, found.heads[0].layer, found.heads[0].head, "heads", grid=1)


def _all_heads(made: Document, beside: Beside) -> None:
    """The weights that a result does not hold itself: of all heads, or of some in full."""
    (overview,) = beside.heads or (None,)
    if isinstance(overview, Overview):
        made.readings.append(sides.of_overview(overview, made.blocks, beside.full))
    elif beside.full:
        made.readings.append(sides.of_heads(beside.full, made.blocks))


def _comparison(made: Document, found: Comparison, beside: Beside) -> None:
    made.readings = runs.of_sides(found, beside.heads, made.blocks)
    a = found.a
    made.both = {
        "pairs": runs.pairs_of(found, beside.heads),
        "aligned": found.divergence is not None,
    }
    made.heading = _told(comparison.subject(found), comparison.heads(found), comparison.models(found))
    made.grids = numbers.of_comparison(found)
    made.says += [comparison.subject(found), *comparison.view_remarks(found)]
    looked: dict[str, Any] = {"words": found.words, "special": found.special.value}
    _opens(made, a.head.layer, a.head.head, "both", grid=1, query=a.position, **looked)


def _difference(made: Document, found: Difference, beside: Beside) -> None:
    made.heading, made.claims = difference.subject(found), True
    told = (difference.control_words, difference.shown_words, difference.differing_words)
    made.says += [said for each in told if (said := each(found))]
    made.grids = numbers.of_difference(found)
    made.both = {"pairs": found.pairs, "aligned": True}
    made.readings, looked = runs.of_runs(found, beside.heads, made.blocks)
    layer, head = found.pairs[found.shown][:2]
    _opens(made, layer, head, "both", grid=1 if made.grids else 0, **looked)


def _corpus(made: Document, found: Corpus, beside: Beside) -> None:
    made.heading, made.claims = _told(corpus.subject(found), corpus.setting(found)), True
    made.grids = of_texts.of_corpus(found)
    told = [corpus.read_words(found.read), corpus.left_out(found.read), *corpus.absent_words(found)]
    told += [*(corpus.link_legend(found) if found.linked else ()), corpus.held_out(found)]
    made.says += [each for each in (*told, *(each for _, each in corpus.certified_words(found))) if each]
    i, j = next(iter(corpus.ranked(found.main.scores)), (0, 0))
    _opens(made, found.layers[i], found.heads[j], "heads", grid=1)


def _corpora(made: Document, found: CorpusDifference, beside: Beside) -> None:
    made.heading, made.claims = _told(corpora.subject(found), corpora.setting(found)), True
    made.grids = of_texts.of_corpora(found)
    made.says += [corpora.read_words(found), corpora.beyond_words(found.main), *found.notes]
    i, j = next(iter(corpora.ranked(found.main)), (0, 0))
    _opens(made, found.layers[i], found.heads[j], "heads", grid=1)


# a further kind of result with a page is a function above and a line here
_PARTS: dict[type, Callable[[Document, Any, Beside], None]] = {
    HeadWeights: _head,
    HeadView: _view,
    HeadTerms: _terms,
    Overview: _overview,
    Thumbnails: _thumbnails,
    Projection: _map,
    Report: _report,
    Prediction: _prediction,
    PictureAttention: _picture,
    PictureHeads: _picture,
    SoundAttention: _sound,
    SoundHeads: _sound,
    Finding: _finding,
    Ablation: _ablation,
    Comparison: _comparison,
    Difference: _difference,
    Corpus: _corpus,
    CorpusDifference: _corpora,
}
PAGED = tuple(_PARTS)

__all__ = ["PAGED", "Document", "document"]
