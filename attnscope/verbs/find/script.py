"""What a program is told, so that it computes the figures of `find` again."""

from itertools import pairwise

from attnscope.errors import InputError
from attnscope.render.script import Told, of_run
from attnscope.results import Kind, Special
from attnscope.tokens import Tokens
from attnscope.verbs.find.result import Finding


def figures(result: Finding) -> Told:
    controls = result.controls
    if result.by.is_long:
        raise InputError(f"no script: its rows are {result.by.several}, and a script reads tokens or words")
    if result.by.joins and result.special is not Special.SHOW:
        raise InputError("no script: its tokens are joined to words, and special ones left out")
    told = of_run(result.provenance, result.query_tokens, result.kind, result.tower)
    sides = (result.query_tokens, result.key_tokens)
    queries, keys = (_pieces(tokens, result, told["inputs"]) for tokens in sides)
    places = [(result.layers[i], result.heads[j], i, j) for i, j in result.ranking]
    return told | {
        "queries": queries,
        "keys": keys,
        "renormalised": result.special is Special.RENORMALISE,
        "links": result.links.tolist(),
        "like": result.question.like,
        "smaller is better": result.smaller_is_better,
        "controls": controls.ids.tolist(),
        "exchanged": controls.input,
        "heads": [
            (layer, head, *(float(each[i, j]) for each in (result.weights, controls.mean, controls.below)))
            for layer, head, i, j in places
        ],
    }


def _pieces(tokens: Tokens, result: Finding, inputs: dict[str, tuple[int, ...]]) -> list[list[int]]:
    starts, asked = list(tokens.positions), result.question
    if not result.by.joins:
        sides = {"queries": asked.query_span, "keys": asked.key_span}
        if result.kind is Kind.CROSS:
            del sides["keys" if tokens is result.query_tokens else "queries"]
        named = {span[0]: list(span) for span in sides.values() if span}
        return [named.get(start, [start]) for start in starts]
    own = tokens is result.query_tokens and result.kind is not Kind.ENCODER
    read = inputs.get("decoder_input_ids" if own else "input_ids", inputs["input_ids"])
    return [list(range(*ends)) for ends in pairwise([*starts, len(read)])]
