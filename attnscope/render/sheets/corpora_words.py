"""What `compare` says of two corpora, in the words of `words/corpora.jinja`."""

import numpy as np

from attnscope.render.kit.numbers import number
from attnscope.render.sheet.heads import ordered
from attnscope.render.sheet.said import Place, named
from attnscope.render.sheets.corpus_words import FLOOR
from attnscope.render.sheets.overview import form_of_tokens
from attnscope.render.words import Said
from attnscope.results import CorpusDifference
from attnscope.results.claims.corpora import ScoresApart
from attnscope.results.claims.lengths import FEWEST

_LONGER = 1.1  # times the length of the other's texts: what is said of two corpora
_MANY = 0.5  # of the texts: where fewer are compared the answer says so


def ranked(scores: ScoresApart) -> list[Place]:
    """Every head that has a difference, those first that differ by most errors of those that are needed."""
    return ordered(np.abs(scores.reached) / np.where(np.isnan(scores.limit), 1.0, scores.limit))


def written(value: float, tokens: bool) -> str:
    """A mean beside another one, that of an entropy as so many tokens."""
    return form_of_tokens(float(np.exp(value))) if tokens else number(value, 3)


def said(result: CorpusDifference, in_nats: bool = False) -> Said:
    """The words of `compare` about two corpora, whose entropy counts tokens unless it is wanted `in_nats`."""
    return Said("corpora", _facts(result, result.main.scores.measure == "entropy" and not in_nats))


def _facts(result: CorpusDifference, tokens: bool) -> dict[str, object]:
    scores, described, order = result.main, result.main.scores.description, ranked(result.main)
    best = order[0] if order else None
    a, b = result.tokens
    shares = list(zip("AB", result.compared, strict=True))
    models = [each.model for each in result.provenances]
    return {
        # what was compared
        "tokens": tokens,
        "measure": described.name,
        "label": described.title,
        "amount": described.label or described.name,
        "unit": described.unit,
        "measures": len(result.measures),
        "size": scores.difference.size,
        "sides": [
            {
                "side": side,
                "name": read.name,
                "model": model,
                "texts": read.texts,
                "compared": round(share * read.texts),
                "share": share,
                "mean": read.tokens / max(read.texts, 1),
            }
            for (side, share), read, model in zip(shares, result.reads, models, strict=True)
        ],
        "models": len({*models}),
        "floor": FLOOR,
        # what came out
        "heads": len(order),
        "beyond": len(scores.beyond),
        "best": best and named(result, best),
        "first": best and written(float(scores.first[best]), tokens),
        "second": best and written(float(scores.second[best]), tokens),
        "errors": best and float(scores.reached[best]),
        "differing": bool(np.nan_to_num(scores.difference).any()),
        "nothing": result.nothing,
        # how long the texts are
        "equal": result.equal,
        "shared": [each for each in result.lengths if each.shared],
        "fewest": FEWEST,
        "few_shared": [each for each in shares if result.equal and each[1] < _MANY],
        "longer": not result.equal and max(a, b) >= _LONGER * min(a, b),
        "tokens_a": a,
        "tokens_b": b,
    }
