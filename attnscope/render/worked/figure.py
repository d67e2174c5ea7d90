"""A worked example on one page: what is given, then step by step, each with its shape."""

from dataclasses import replace

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Frame, Words, sheet
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.figure import proof_words
from attnscope.render.look import look_now
from attnscope.render.worked.plot_step import Block, axes_on, block, draw_step
from attnscope.render.worked.terminal import check_words, mistake_words, pair_lines, sizes, source
from attnscope.results import Verdict
from attnscope.results.worked import Step, Worked
from attnscope.tokens import printable

_WIDEST, _BETWEEN, _BELOW = 17.0, 0.35, 0.25
_LAST = ("output", "y", "values", "match", "answer")


def worked_figure(result: Worked) -> Figure:
    """Every step as a small heat map, in lanes."""
    with drawing():
        return _steps(result)


def _steps(result: Worked) -> Figure:
    lanes = _lanes([block(step) for step in result.steps])
    width = max(sum(each.width + _BETWEEN for each in lane) - _BETWEEN for lane in lanes)
    height = sum(_height(lane) + _BELOW for lane in lanes) - _BELOW
    figure, (canvas,) = sheet([Frame(width, height, left=0.0, top=0.0)], _words(result))
    below = 0.0
    for lane in lanes:
        left, top = 0.0, max(each.top for each in lane)
        for each in lane:
            aligned = replace(each, top=top)
            draw_step(aligned, axes_on(canvas, (left + each.left, below + top, *each.size)))
            left += each.width + _BETWEEN
        below += _height(lane) + _BELOW
    return figure


def _lanes(blocks: list[Block]) -> list[list[Block]]:
    """Blocks side by side: what is given, what is projected from it, what follows; wrapped where too wide."""
    lanes: list[list[Block]] = []
    for each in blocks:
        kind = _kind(each.step)
        fits = lanes and sum(one.width + _BETWEEN for one in lanes[-1]) + each.width <= _WIDEST
        if fits and _kind(lanes[-1][-1].step) == kind:
            lanes[-1].append(each)
        else:
            lanes.append([each])
    return lanes


def _kind(step: Step) -> int:
    """0 for what is given, 1 for its projections, 2 for all between a query and a key, 3 for a mistake."""
    if step.wrong:
        return 3
    between = step.key in _LAST or step.matrix.columns.word == "key"
    return 2 if between else 1 if step.formula else 0


def _height(lane: list[Block]) -> float:
    return max(each.top for each in lane) + max(each.size[1] for each in lane)


def _words(result: Worked) -> Words:
    heading = result.title + (f" · example {result.name}" if result.name else "")
    if result.verdict is Verdict.FAILED:  # any other is no failure: it stands in the foot, with its reason
        heading += f" · {verdict_words(result.verdict)}"
    if result.mistake is not None:
        heading += f" · beside it, wrong: {result.mistake.what}"
    foot = mistake_words(result.mistake) if result.mistake else []
    foot += [f"{proof_words(one)} · against {against}" for against, one in result.proofs]
    foot += [" · ".join(check_words(check) for check in result.checks)] if result.checks else []
    foot += ["   ".join(line.plain for line in pair_lines(result.pairs, 3))] if result.pairs else []
    foot += [printable(note) for note in result.notes]
    foot += [source(result.provenance)] if result.provenance and look_now().in_full else []
    return Words(printable(heading), f"{result.formula} · {sizes(result)}", tuple(foot))
