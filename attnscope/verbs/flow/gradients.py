"""What goes back by gradients, beside what replacing does."""

from contextlib import nullcontext
from dataclasses import replace

from attnscope.analysis.inputs.attributing import Chance, Direction, Measured, attributed
from attnscope.analysis.inputs.entrance import of_pieces, of_tokens
from attnscope.analysis.inputs.replacing import Blanked, Input, vectors
from attnscope.capture import Selection
from attnscope.capture.running import evaluating
from attnscope.errors import InputError
from attnscope.results.claims.attributed import Attributed, ByGradients
from attnscope.session.choosing import Chosen
from attnscope.session.questions.pooled import last_of
from attnscope.session.questions.replacing import MOST_HELD, layer_module
from attnscope.session.reading import Reading
from attnscope.verbs.flow.result import Flow
from attnscope.vocabulary import Kind, Route


def by_gradients(
    reading: Reading, chosen: Chosen, result: Flow, replaced: Input | Blanked, answer: Chance | None
) -> Flow:
    """The flow with the ways back by gradients from the same answer, or why there are none.

    Where nothing is answered they go back from the vector of the query.
    """
    if result.by.joins:
        return _without(result, f"they go back to tokens: leave --by {result.by} out")
    if result.query is None:
        return _without(result, "they follow the answer or the vector of one token, not a pooled vector")
    if len(result.tokens) > MOST_HELD:
        return _without(result, f"all of a run is kept for it: up to {MOST_HELD} positions")
    model, inputs = reading.model.module, reading.inputs
    selection: Selection | str = chosen.selection()
    if chosen.route is Route.RETURNED:
        selection = "weights that a model returns have no gradient here"
    elif chosen.block:
        selection = "a layer that reads in blocks has no one matrix of weights"
    with reading.running("following the answer back by gradients"):
        try:
            entrance = (
                of_tokens(model, inputs, replaced)
                if isinstance(replaced, Input)
                else of_pieces(inputs, replaced, len(result.tokens))
            )
            measured = _turned(reading, chosen, result, replaced) if answer is None else answer
        except InputError as error:
            return _without(result, str(error))
        found = attributed(model, entrance, measured, selection, result.layers, result.heads)
    return replace(result, attributed=tuple(_of_text(each, len(result.tokens)) for each in found))


def _of_text(each: Attributed, length: int) -> Attributed:
    """Without what the answer's own tokens, which are read behind the text, are given."""
    return each if each.values is None else replace(each, values=each.values[:length])


def _without(result: Flow, reason: str) -> Flow:
    return replace(result, attributed=tuple(Attributed(name, None, reason) for name in ByGradients))


def _turned(reading: Reading, chosen: Chosen, result: Flow, replaced: Input | Blanked) -> Measured:
    module, inputs = reading.model.module, reading.inputs
    inside = chosen.kind is Kind.ENCODER and reading.model.writes
    tokens = isinstance(replaced, Input)
    last = last_of(module, inside) if tokens else layer_module(module, chosen, result.layers[-1])
    assert last is not None, "its vectors turned"
    with evaluating(module):
        was = vectors(module, inputs, last, nullcontext())
    assert was is not None, "its vectors turned"
    assert result.query is not None, "a query, where nothing is pooled"
    return Direction(last, result.query, was[:, result.query].float())
