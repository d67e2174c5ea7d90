"""One result of every kind, and the texts that a page must not take for its own."""

from dataclasses import fields, replace
from functools import cache

import cases_ablate
import cases_align
import cases_check
import cases_cite
import cases_compare
import cases_compose
import cases_contributions
import cases_dependencies
import cases_difference
import cases_dimensions
import cases_drift
import cases_explain
import cases_find
import cases_flow
import cases_layers
import cases_links
import cases_long
import cases_media
import cases_prompts
import cases_retrieval
import cases_senses
import cases_thumbnails
import cases_why
import made_corpus
import made_outlines
import made_reports
import made_results as made

from attnscope.analysis.heads.view import viewed
from attnscope.results import HeadAttention, HeadTerms, HeadWeights, Result, Special
from attnscope.results.result import KINDS
from attnscope.tokens import Token, Tokens
from attnscope.verbs.sdpa.examples import example
from attnscope.vocabulary import Unit

HOSTILE = '<script>alert(1)</script> & "x"'


def returned() -> HeadWeights:
    """The weights of the made head alone."""
    head = made.head(causal=True)
    return HeadWeights(**{each.name: getattr(head, each.name) for each in fields(HeadWeights)})


def terms() -> HeadTerms:
    head = made.head()
    scaled = head.scores * head.scale
    return HeadTerms(head, scaled, scaled, None, scaled.max(axis=1), ())


@cache  # half a second
def every() -> dict[str, Result]:
    """By the name of its class."""
    head = made.head()
    made_ones: list[Result] = [
        head, returned(), viewed(head, by=Unit.WORD, special=Special.HIDE), terms(), made.overview(3, 4),
        cases_dimensions.dimensions(), made.verification(), made.projection(), made_reports.masked(head, [4]),
        made_reports.report(), cases_compare.texts(), example("fruit"), example("why-scale"),
        cases_media.picture_head(), cases_media.picture_grid(), cases_media.sound_head(),
        cases_media.sound_grid(), made_outlines.outline(), cases_senses.senses(), cases_drift.drift(),
        cases_find.finding(), cases_flow.flow(), cases_dependencies.dependencies(),
        cases_thumbnails.thumbnails(), cases_difference.between(), cases_check.check(),
        cases_ablate.ablation(), cases_compose.composition(), cases_long.long_head(), made_corpus.corpus(),
        made_corpus.apart(), cases_why.why(), cases_layers.layered("middle"), cases_links.links(),
        cases_prompts.prompts(), cases_explain.explanation(), cases_contributions.contributions(),
        cases_align.alignment(), cases_align.timing(), cases_cite.citation(), cases_cite.referee(),
        cases_retrieval.retrieval(),
    ]  # fmt: skip
    named = {type(each).__name__: each for each in made_ones}
    assert set(named) == {kind.__name__ for kind in (*KINDS.values(), HeadAttention)}
    return named


# whose pages have every block, every view and every script of a page between them
TOGETHER = (
    "Comparison", "Alignment", "Finding", "PictureHeads", "Explanation", "Worked", "Overview", "Report",
    "SoundAttention", "Thumbnails",
)  # fmt: skip


# small ones, whose files have every sort of field and of array between them
FEW = ("HeadAttention", "Worked", "Prompts", "Citation", "Outline", "Timing", "LongHead", "PictureHeads")


def together() -> dict[str, Result]:
    return {kind: every()[kind] for kind in TOGETHER}


def tokens_called(names: list[str], text: str) -> Tokens:
    """Tokens with any names, of one text."""
    return Tokens((text,), tuple(Token(i, name, name, None, None) for i, name in enumerate(names)))


def hostile() -> HeadAttention:
    """A head whose tokens, text and model are called like the marks of a page."""
    plain = made.head(["a", "b"])
    tokens = tokens_called([HOSTILE, "<img src=x onerror=alert(1)>"], HOSTILE)
    told = replace(plain.provenance, model=HOSTILE, requested=HOSTILE)
    return replace(plain, query_tokens=tokens, key_tokens=tokens, provenance=told)
