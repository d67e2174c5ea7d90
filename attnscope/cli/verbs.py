"""A verb as a command: its options from the fields of its questions, and what happens when it is typed.

A question is asked of one text, or of every line of a file: the model is loaded once, the answers are shown.
"""

import inspect
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from operator import or_
from pkgutil import iter_modules
from typing import Any

from attnscope.cli import commands
from attnscope.cli.asking import Asking
from attnscope.cli.options.delivery import Delivery, PictureDelivery
from attnscope.cli.options.inputs import ArticleRead, Read, SparedRead, Writing, check_something
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import grouped
from attnscope.errors import InputError
from attnscope.session import verbs
from attnscope.session.question import Files, OfModel, Question
from attnscope.session.request import ModelRequest, ProvenModel

_READS = {(True, False): ArticleRead, (False, True): SparedRead, (False, False): Read}
DERIVED = {each.name for each in iter_modules(verbs.__path__)} - {
    each.name for each in iter_modules(commands.__path__)
}


def command_of(name: str) -> Callable[..., None]:
    """The command of a verb that is asked of one text, or of each of many, or of a model alone."""
    verb = import_module(f"{verbs.__name__}.{name}")
    forms: tuple[type[Question[Any]], ...] = verb.FORMS

    alone = issubclass(forms[0], OfModel)

    def command(**given: Any) -> None:
        (put_alone if alone else put)(**given)

    read = _READS[forms[0].ARTICLE, any(form.OWN_TEXTS for form in forms)]
    groups = {
        **({} if alone else {"read": read}),
        "asked": reduce(or_, forms),
        "delivery": PictureDelivery if forms[0].DRAWS else Delivery,
        **({"writing": Writing} if any(form.WRITES for form in forms) else {}),
        "request": ProvenModel if forms[0].OF_THIS_MODEL else ModelRequest,
        "output": Output,
    }
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, keyword, annotation=kind) for name, kind in groups.items()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = name, verb.__doc__
    return grouped(command)


def put(
    asked: Question[Any],
    read: Read,
    delivery: Delivery,
    request: ModelRequest,
    output: Output,
    writing: Writing | None = None,
) -> None:
    """Ask what was typed, of a text or of many, and show the answer."""
    if asked.OWN_TEXTS and (many := [name for name in ("texts", "fill") if getattr(read, name) is not None]):
        raise InputError(f"the texts are made here: leave --{many[0]} out")
    if not (asked.OWN_TEXTS or asked.ARTICLE):
        check_something(read.text, read.ids, read.image, read.audio, read.texts, read.chat)
    over = None if read.source is None else asked.over
    inputs = read.inputs() if writing is None else read.inputs(writing)
    own = not asked.OWN_TEXTS or inputs.text is not None
    question, inputs = asked.reads(inputs)
    question = question.into(Files(tuple(delivery.targets)))
    check_delivery(delivery, question.KIND, many=over is not None)
    with output.importing():
        import_module(question.ANSWER.partition(":")[0])
    Asking(question, request, read, delivery, output, over, own).put(inputs)


def put_alone(asked: OfModel[Any], delivery: Delivery, request: ModelRequest, output: Output) -> None:
    """Ask what was typed of a model alone, and show the answer."""
    check_delivery(delivery, asked.KIND)
    with output.importing():
        import_module(asked.ANSWER.partition(":")[0])
    output.deliver(asked.answer(request, output), delivery)
