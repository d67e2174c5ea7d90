"""`attnscope heads`: one head in full, an overview of several, or either over a picture or a sound."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli import options
from attnscope.cli.asking import Answer, Question, with_heads
from attnscope.cli.groups import Delivery, Looking, Read, Request, Wanted, Writing, decoded
from attnscope.cli.long import Long, answered_in_tiles
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN
from attnscope.errors import InputError
from attnscope.vocabulary import Scaling, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attnscope.cli.asking import OfHead
    from attnscope.render.focus import Focus
    from attnscope.render.web.beside import Beside
    from attnscope.results import Result
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

Shown = Annotated[
    Stage,
    typer.Option(
        "--show",
        help="What to tabulate; scores are q.k, scaled is what enters the softmax.",
    ),
]
Terms = Annotated[
    bool,
    typer.Option(
        "--terms",
        help="Take the scores of one head apart: product, scale, cap, positions, mask; with --query for "
        "every key of one query, and with --key for one pair.",
        show_default=False,
    ),
]
Dims = Annotated[
    bool,
    typer.Option(
        "--dims",
        help="The score of one query and one key by dimension: the products of which q.k is the sum, largest "
        "first; by default of the strongest pair, else of --query and --key.",
        show_default=False,
    ),
]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME[,NAME...]|all",
        help="What the grid of several heads shows, as `attnscope measures` lists it. Default: entropy.",
    ),
]
AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORD",
        help="With --measure importance, attention-gradient or logit: the answer that is meant, a word, a "
        "class, follows. Default: the likeliest one.",
    ),
]
AsGrid = Annotated[
    bool,
    typer.Option(
        "--grid",
        help="The weights of every head in small, layers by heads on one page and on one scale; a cell of a "
        "long text is the largest of several pairs.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Asked:
    """What is shown of the heads. Raises `InputError` for options that do not go together."""

    PANEL = SHOWN

    query: options.QueryOverFile = None
    show: Shown = Stage.WEIGHTS
    terms: Terms = False
    dims: Dims = False
    key: options.Key = None
    measure: Measures = None
    answer: AnswerName = None
    grid: AsGrid = False
    scale: options.Scale = Scaling.AUTO
    rows: options.Rows = None

    def check(self, looking: Looking, read: Read, writing: Writing) -> None:
        from attnscope.render.focus import listed

        listed(self.rows)
        if self.query is not None and self.show in (Stage.SCORES, Stage.SCALED):
            raise InputError(
                f"--query shows the weights and scaled scores of one token: leave --show {self.show} out"
            )
        if self.key is not None and self.show is not Stage.WEIGHTS:
            raise InputError(f"--key is about one weight: leave --show {self.show} out")
        if looking.changes and self.show is not Stage.WEIGHTS:
            raise InputError(
                f"--words and --special are about weights: --show {self.show} belongs to single tokens"
            )
        others = [f"--show {self.show}"] if self.show is not Stage.WEIGHTS else []
        others += ["--words and --special"] if looking.changes else []
        if self.key is not None and self.query is None:
            raise InputError("--key needs --query: what that query gives to the key")
        if self.grid:
            self._check_grid([f"--show {self.show}"] if self.show is not Stage.WEIGHTS else [])
            return
        if self.terms and others:
            raise InputError(
                f"--terms is about the scores of single tokens: leave {' and '.join(others)} out"
            )
        if self.dims and (others := [*others, *(["--terms"] if self.terms else [])]):
            raise InputError(f"--dims is about one pair of tokens: leave {' and '.join(others)} out")
        if self.scale is not Scaling.AUTO and self.show is not Stage.WEIGHTS:
            raise InputError(f"--scale is about weights: {self.show} stand around 0, leave --scale out")
        if read.image is None and read.audio is None:
            return
        if self.measure is not None:  # of whole heads, by all tokens or by those that are left
            others = [each for each in others if each != "--words and --special"]
        others += ["--terms"] if self.terms else []
        others += ["--dims"] if self.dims else []
        others += ["--generate"] if writing.generate else []
        others += ["--scale"] if self.scale is not Scaling.AUTO else []
        if others:
            raise InputError(
                f"--image and --audio show the weights of one query: leave {' and '.join(others)} out"
            )

    def _check_grid(self, others: list[str]) -> None:
        asked = {
            "--terms": self.terms,
            "--dims": self.dims,
            "--query": self.query is not None,
            "--rows": self.rows is not None,
        }
        asked["--measure"] = self.measure is not None
        others = [*others, *(name for name, there in asked.items() if there)]
        if others:
            raise InputError(f"--grid shows whole heads in small: leave {' and '.join(others)} out")

    @property
    def of_an_answer(self) -> bool:
        """Whether a measure is asked for that is about the model's answer; `InputError` for what has none."""
        if self.measure is None:
            if self.answer is not None:
                raise InputError(
                    "--answer is what --measure importance, logit and others are about: name one"
                )
            return False
        from attnscope.session.questions.claims.attribution import of_answers

        if not of_answers(self.measures or ()):
            if self.answer is not None:
                raise InputError(f"--answer is not what --measure {self.measure} is about: leave it out")
            return False
        if self.query is not None:
            raise InputError("--query shows weights: an answer is measured over all queries, leave it out")
        return True

    @property
    def measures(self) -> tuple[str, ...] | None:
        """The measures that are asked for by name, None where none are."""
        if self.measure is None:
            return None
        from attnscope.measures import parse_measures

        return parse_measures(self.measure)


def heads(
    read: Read,
    wanted: Wanted,
    asked: Asked,
    delivery: Delivery,
    *,
    looking: Looking,
    long: Long,
    writing: Writing,
    request: Request,
    output: Output,
    no_cache: options.NoCache = False,
) -> None:
    """Show what attention heads look at, recomputed and certified.

    With one --layer and one --head that head in full; otherwise an overview of the chosen heads.
    """
    asked.check(looking, read, writing)
    check_delivery(delivery, "HeadWeights")
    inputs, measures = read.inputs(writing), asked.measures
    from attnscope.session.opening import Purpose

    answers = asked.of_an_answer

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "heads are wanted"
        if (in_tiles := answered_in_tiles(reading, chosen, long, asked, looking, delivery)) is not None:
            return in_tiles
        if inputs.sensed and not asked.grid and measures is None:
            from attnscope.session.questions.media import lay_over

            return Answer(lay_over(reading, chosen, decoded(asked.query or "") or None))
        if asked.grid:
            return _grid(reading, chosen, asked, looking, paged=question.paged)
        if chosen.one or asked.terms or asked.dims:
            if measures is not None:
                raise InputError("--measure is about several heads: leave --head out, or name several")
            result, focus = _one(reading, chosen, asked, looking)
            return Answer(result, focus, each=lambda: [result])
        if asked.show is not Stage.WEIGHTS:
            raise InputError("--show needs one head: give one --layer and one --head")
        if asked.scale is not Scaling.AUTO:
            raise InputError("--scale needs one head: give one --layer and one --head")
        if question.paged and not answers:
            from attnscope.session.questions import pages

            reading = pages.kept(reading, chosen, measures or ())
        several = _several(reading, chosen, asked, looking)
        return Answer(
            several,
            each=lambda: _each(reading, chosen, looking),
            page=lambda: _page(reading, chosen, several),
        )

    cached = not no_cache and not long.asked
    question = Question(ask, request, read, wanted, delivery, output, whole=answers, cached=cached)
    question.put(inputs, Purpose.ANSWER_OR_CLASS if answers else Purpose.ATTENTION)


def _grid(reading: "Reading", chosen: "Chosen", asked: Asked, looking: Looking, *, paged: bool) -> Answer:
    """Every head in small; what a page shows of them is read at the same time."""
    from attnscope.render.focus import Focus

    focus = Focus(scale=asked.scale)
    if not paged:
        from attnscope.session.cache.answers import read_thumbnails

        return Answer(read_thumbnails(reading, chosen, looking), focus)
    from attnscope.session.questions.pages import read_small

    small, held = read_small(reading, chosen, looking)
    return Answer(small, focus, page=lambda: with_heads(small, held))


def _page(reading: "Reading", chosen: "Chosen", several: "Result") -> "tuple[Result, Beside]":
    """What a page of several heads is made of: the weights of all, and queries and keys of some."""
    from attnscope.render.web.beside import Beside
    from attnscope.results import Overview
    from attnscope.session.questions.pages import heads_in_full

    assert isinstance(several, Overview), "several heads are an overview"
    return several, Beside(heads_in_full(reading, chosen, several.tokens or several))


def _each(reading: "Reading", chosen: "Chosen", looking: Looking) -> "Iterator[OfHead]":
    """Every head as it is looked at, for a file of its own."""
    from attnscope.session.questions.each import each_head

    return each_head(reading, chosen, looking)


def _several(reading: "Reading", chosen: "Chosen", asked: Asked, looking: Looking) -> "Result":
    """The heads at a glance, by their measures or by what one query gives to a key in each."""
    from attnscope.session.cache.answers import ENTROPY, read_aimed, read_overview

    if asked.of_an_answer:
        from attnscope.session.attributing import Attributing
        from attnscope.session.questions.claims.attribution import read_measured

        answer = None if asked.answer is None else decoded(asked.answer)
        return read_measured(reading, chosen, asked.measures or (), looking, Attributing(answer))
    if asked.query is None:
        return read_overview(reading, chosen, asked.measures or ENTROPY, looking)
    return read_aimed(reading, chosen, asked.query, asked.key, asked.measures or (), looking)


def _one(reading: "Reading", chosen: "Chosen", asked: Asked, looking: Looking) -> "tuple[OfHead, Focus]":
    """One head as it is looked at, or its scores taken apart, and which query of it is meant."""
    from attnscope.render.focus import Focus, listed
    from attnscope.session.cache.answers import look_at, read_dimensions, read_terms, read_weights

    if asked.dims:
        pair = read_dimensions(reading, chosen, asked.query, asked.key)
        return pair, Focus(rows=listed(asked.rows))
    if asked.terms:
        terms = read_terms(reading, chosen)
        queries, keys = terms.head.query_tokens, terms.head.key_tokens
        result: OfHead = terms
    else:
        head = read_weights(reading, chosen, asked.show)
        shown = look_at(head, looking) or head
        queries, keys = shown.query_tokens, shown.key_tokens
        result = shown
        if asked.show in (Stage.K, Stage.V):
            queries = keys  # whose vectors these are
    query = () if asked.query is None else (queries.position(asked.query),)
    key = None if asked.key is None else keys.position(asked.key)
    return result, Focus(asked.show.value, query, key, scale=asked.scale, rows=listed(asked.rows))
