"""One query and one key as CSV: a row per dimension, largest product first, full precision."""

from collections.abc import Iterator

from attnscope.render.kit.csv import Row, comments, exact, rows
from attnscope.render.kit.words.certificate import certificate_words
from attnscope.results import Dimensions


@rows.register
def _(result: Dimensions) -> Iterator[Row]:
    """With the pair that each is turned in, and the tokens of one turn, empty where it is turned in none."""
    found = result.rotation
    yield "dim", "q", "k", "product", "others", "cumulated", "turned_with", "wavelength"
    partner: dict[int, tuple[int, float]] = {}
    if found is not None:
        for one, other, wave in zip(found.first, found.second, found.wavelength, strict=True):
            partner |= {int(one): (int(other), float(wave)), int(other): (int(one), float(wave))}
    for dim, so_far in zip(result.order.tolist(), result.cumulated, strict=True):
        values = (result.query_vector, result.key_vector, result.products, result.beside)
        turned, wave = partner.get(dim, ("", None))
        numbers = [exact(float(each[dim])) for each in values]
        yield dim, *numbers, exact(float(so_far)), turned, "" if wave is None else exact(wave)


@comments.register
def _(result: Dimensions) -> Iterator[tuple[str, object]]:
    """The comments that any result has, the certificate of the head, and which pair this is."""
    yield from comments.dispatch(object)(result)
    head = result.head
    yield "certificate", certificate_words(head.certificate)
    yield "query", head.query_tokens.named(result.query)
    yield "key", head.key_tokens.named(result.key)
    yield "score", exact(float(head.scores[result.query, result.key]))
    if result.unpaired:
        yield "rotary", result.unpaired
