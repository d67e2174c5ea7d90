"""`attnscope compare`: one word in two texts, two layers or two models, or all heads of two models."""

from dataclasses import replace
from typing import TYPE_CHECKING

from attnscope import incoming
from attnscope.cli.lines import Line, read_lines
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Writing
from attnscope.cli.options.sides import Sides
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import ExceededError, InputError
from attnscope.session.question import Files
from attnscope.session.request import ProvenModel
from attnscope.session.wanted import Looking, Wanted

if TYPE_CHECKING:
    from attnscope.results import Senses
    from attnscope.session.questions.senses import LabelledText


def compare(
    sides: Sides,
    wanted: Wanted,
    delivery: Delivery,
    *,
    looking: Looking,
    writing: Writing,
    request: ProvenModel,
    output: Output,
) -> None:
    """Compare a word in two or many texts, two models, two runs.

    The word may also be compared in two layers. How alike its query, key, value and output vectors are,
    layer by layer, and what it attends to on each side. Of the layers and heads that are asked for, that is
    shown of the head that differs most; the table has every layer. By words, the vectors of a word are the
    means over its pieces. Rows are compared as they are, or as they are once special tokens are taken out
    and the rest is scaled up; hiding them changes only what is shown. Of many texts (--texts) the cosines
    of all pairs are told, and where their lines have labels, how alike pairs of one label and of two are,
    beside labels that are shuffled.

    Two models over many texts (--model-b with --texts, no word; an adapter's folder is a model) are compared
    head by head: how far the attention of each moved, beside what rounding does, by whose doing, and what
    putting the old head back does to the answer.

    Two stored runs, files that heads -o wrote, are compared head by head: what each query gives more under
    the second, beside what rounding may do and how far two heads of one layer differ. Texts, checkpoints,
    kernels and precisions may differ, not the number of tokens. Two that corpus -o wrote are compared in the
    mean of every head by every measure at equal length of texts, with its standard error.
    """
    if wanted.block:
        raise InputError("compare looks at block 0 of a layer: leave --block out")
    if sides.stored is not None:
        check_delivery(delivery, "Difference")
        from attnscope.render.web.room import Beside
        from attnscope.results import Difference
        from attnscope.session.questions.claims.difference import compare_any, load_both

        runs, names = load_both(*sides.stored)
        others = sides.layer_b, sides.head_b
        difference = compare_any(*runs, names, wanted.layer, wanted.head, *others)
        both = Beside(heads=runs) if isinstance(difference, Difference) else Beside()  # of corpora no weights
        output.deliver(difference, delivery, beside=both)
        return
    if sides.of_tuning:
        _tuning(sides, wanted, looking, delivery, request, output)
        return
    check_delivery(delivery, "Comparison")
    if sides.texts is not None:
        senses = _in_many(sides, wanted, looking, writing, request, output)
        output.deliver(senses, delivery)
        return
    inputs, words = sides.inputs(writing), sides.words
    with output.importing():
        from attnscope.session.questions.comparison import compare_inputs, compare_layers, compare_models
        from attnscope.session.questions.pages import BothHeads
    from attnscope.render.web.room import Beside, both_fit

    page = BothHeads(both_fit if Files(tuple(delivery.targets)).pages else None)
    if sides.layer_b is not None:
        result = compare_layers(request, inputs[0], words[0], wanted, sides.layer_b, output, looking, page)
    elif sides.model_b is not None:
        result = compare_models(_both(sides, request), inputs, words, wanted, output, looking, page)
    else:
        result = compare_inputs(request, inputs, words, wanted, output, looking, page)
    output.deliver(result, delivery, beside=Beside(heads=page.heads))


def _both(sides: Sides, request: ProvenModel) -> tuple[ProvenModel, ProvenModel]:
    return request, replace(request, name=sides.model_b, revision=None, adapter=None)


def _tuning(
    sides: Sides, wanted: Wanted, looking: Looking, delivery: Delivery, request: ProvenModel, output: Output
) -> None:
    """All heads of two models over many texts; exit code 6 where one moved further than it was to."""
    assert sides.texts is not None, "asked only where there is a file"
    check_delivery(delivery, "Drift")
    if looking.changes:
        raise InputError("two models are compared over all tokens: leave --by, --words and --special out")
    from attnscope.results.claims.prompts import Prompt
    from attnscope.session.questions.claims.drift import DriftQuestion, compare_tuned
    from attnscope.session.request import Inputs

    lines = read_lines(sides.texts)
    called = incoming.called(sides.texts)
    texts = tuple(Prompt(line.number, _labelled(line, f"{called}:{line.number}").text) for line in lines)
    inputs = Inputs(truncate=sides.truncate, split=sides.split)
    asked = DriftQuestion(texts, called, sides.fail_above, inputs, sides.seed)
    with output.each_notice_once():
        drift = compare_tuned(_both(sides, request), asked, wanted, output)
    output.deliver(drift, delivery)
    if exceeding := drift.exceeding:
        first = drift.mean[exceeding[0]]
        raise ExceededError(
            f"{drift.name(exceeding[0])} moved by {first:.3g}: more than --fail-above {sides.fail_above:g}"
        )


def _in_many(
    sides: Sides, wanted: Wanted, looking: Looking, writing: Writing, request: ProvenModel, output: Output
) -> "Senses":
    assert sides.texts is not None, "asked only where there is a file"
    from attnscope.session.questions.senses import Shuffling, compare_senses

    called = incoming.called(sides.texts)
    texts = [_labelled(line, f"{called}:{line.number}") for line in read_lines(sides.texts)]
    shuffling = Shuffling(sides.controls, sides.seed)
    inputs = sides.inputs(writing)[0]
    return compare_senses(request, inputs, texts, sides.words[0], wanted, looking, shuffling, output)


def _labelled(line: Line, named: str) -> "LabelledText":
    """`LABEL`, a tab and the text; of a line of JSON its `text` and its `label`, with all that it names."""
    from attnscope.session.questions.senses import LabelledText

    if not line.in_json:
        label, tab, text = line.text.partition("\t")
        return LabelledText(text, label.strip(), named) if tab else LabelledText(label, "", named)
    try:
        prompt = line.prompt
    except InputError as error:
        raise InputError(f"{named}: {error}") from error
    own = prompt.fields.get("label")
    return LabelledText(prompt.text, "" if own is None else own.text, named, prompt.fields)
