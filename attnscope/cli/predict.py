"""`attnscope predict`: what the model makes of a text."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli import options
from attnscope.cli.groups import Request, Texts
from attnscope.cli.output import NUMBERS, Output, check_targets, save
from attnscope.cli.session import encode, find_checkpoint, inputs_of, loading, read_target, tell_memory

if TYPE_CHECKING:
    from attnscope.model.inputs.target import Target
    from attnscope.model.inputs.text import Encoded
    from attnscope.model.loaded import Model
    from attnscope.model.loading.answering import Task
    from attnscope.results import Prediction

Top = Annotated[int, typer.Option("--top", "-k", metavar="N", min=1, help="How many words to show.")]


def predict(
    texts: Texts,
    top: Top = 5,
    out: options.Numbers = None,
    json: options.Json = False,
    *,
    request: Request,
    output: Output,
) -> None:
    """Show what the model itself makes of a text.

    A masked model fills each [MASK], and says with --pair whether the second text follows; a causal model
    goes on by one token; an encoder-decoder writes.
    """
    targets = list(out or [])
    check_targets(targets, NUMBERS)
    result = predicted(request, texts, top, output)
    save(output, targets, result)
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        output.show(terminal.prediction_header(result), "", terminal.prediction(result, output.width))


def predicted(request: Request, texts: Texts, top: int, output: Output) -> "Prediction":
    """The model's own answer to the texts; `InputError` for a model that has no head to answer with."""
    read = texts.read()
    checkpoint = find_checkpoint(request, output)
    with loading(checkpoint, output):
        from attnscope.model.loading.answering import load_answering

        model, task = load_answering(checkpoint, pair=texts.pair is not None, **request.loading)
    tell_memory(model, output)
    encoded = encode(model, texts.suited(read, model), output, truncate=texts.truncate)
    target = read_target(model, encoded, texts.target, output)
    return answer(model, task, encoded, target, top, output, pair=texts.pair is not None)


def answer(
    model: "Model",
    task: "Task",
    encoded: "Encoded",
    target: "Target | None",
    top: int,
    output: Output,
    *,
    pair: bool,
) -> "Prediction":
    """What `model`, loaded for `task`, answers."""
    from attnscope.analysis import prediction
    from attnscope.capture import provenance_of

    common = (model.module, inputs_of(encoded, target), encoded.tokens)
    provenance = provenance_of(model.module, encoded.tokens, {**model.origin(), "route": "untouched"})
    if pair and task != "masked":
        output.notice(f"{model.name} has no next-sentence head: it reads the two texts as one input")
    with output.working("predicting"):
        if target is not None:
            return prediction.written(
                *common,
                provenance,
                target=target.tokens,
                spell=model.spell,
                top=top,
                finished=target.finished,
                own=target.written,
                step_chances=target.chances,
            )
        if task == "next":
            return prediction.continued(*common, provenance, spell=model.spell, top=top)
        return prediction.filled(
            *common,
            provenance,
            mask_id=model.tokenizer.mask_token_id,
            spell=model.spell,
            top=top,
            pair=pair,
        )
