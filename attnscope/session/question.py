"""Questions as data: each is one frozen dataclass, and its fields hold their options (`option`).

From these come the command, the method of the library with its signature, and their checks.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    overload,
)

from attnscope.errors import InputError, nearest
from attnscope.register import registered
from attnscope.session.option import slots, slots_of, words
from attnscope.session.selection import check_seed
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.results.claims.prompts import Prompts
    from attnscope.session.choosing import Chosen
    from attnscope.session.listener import Listener
    from attnscope.session.opening import Opened, Opening
    from attnscope.session.reading import Reading
    from attnscope.session.request import Inputs, ModelRequest
    from attnscope.session.wanted import Wanted
    from attnscope.tokens import Tokens


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


PAGE, PROGRAM, LAYER, HEAD = ".html", ".py", "{layer}", "{head}"
_OPENING = "attnscope.session.opening:open_model"


def is_of_each_head(file: Path) -> bool:
    """True for a file name with `{layer}` or `{head}`, one file for each head."""
    return LAYER in file.name or HEAD in file.name


@dataclass(frozen=True)
class Files:
    """Output files of an answer; none where the library is called.

    `fit` tells whether a page has room for all heads of two sides.
    """

    places: tuple[Path, ...] = ()
    fit: Callable[[Sequence[Any]], bool] | None = None

    @property
    def pages(self) -> tuple[Path, ...]:
        """The HTML files."""
        return tuple(file for file in self.places if file.suffix.lower() == PAGE)

    @property
    def of_each_head(self) -> tuple[Path, ...]:
        """The files that are one for each head."""
        return tuple(filter(is_of_each_head, self.places))

    @property
    def paged(self) -> bool:
        """True where an HTML page holds all that is chosen, and not one head each."""
        return not {*self.pages} <= {*self.of_each_head}


@dataclass(frozen=True, eq=False)
class Answer(Generic[R_co]):
    """A result with its presentation; `focus` maps the names of a `Focus` of `render` to values.

    `every_head` gives the result of every head alone, for a file of each; `beside` a page's extra parts, by
    the names of a `Beside` there. `drawn_by` is what a picture depends on beside the inputs. `links` has this
    text's links for comparison with other texts; `exceeded` is the message of an exceeded threshold, else "".
    """

    result: R_co
    focus: Mapping[str, Any] = field(default_factory=dict)
    every_head: Callable[[], Iterable[Any]] | None = None
    beside: Callable[[], Mapping[str, Any]] | None = None
    drawn_by: Sequence[object] = ()
    links: Any = None
    exceeded: str = ""


class Question(Generic[R_co]):
    """A question of a reading, whose answer is an `R_co`; `ANSWER` is the function that finds it.

    That gives the answer itself, or an `Answer`. `NAMES` looks whether the tokens that are named are there,
    before weights are read; both are `module:function`. `KIND` is the class of the answer, `PURPOSE` what a
    model is loaded for. `RANKS`: the answer is numbers, and a page has no more weights than it has room for.
    `DRAWS`: the answer is a picture first. `WRITES`: also of text that the model writes itself. `OWN_TEXTS`:
    it makes its texts itself. `ARTICLE`: without a text it reads that of the articles. `OF_THIS_MODEL`: no
    other model stands in for one that is not there. `READS` are fields that say what is read, `SAID` options
    that say that this form is meant. `AGAIN`: a command asks it again of the text that was read. `METHODS`
    are the methods of the library that ask it; of two forms of one method the first is the usual.
    """

    KIND: ClassVar[str]
    ANSWER: ClassVar[str]
    NAMES: ClassVar[str] = ""
    PURPOSE: ClassVar[Purpose] = Purpose.ATTENTION
    RANKS: ClassVar[bool] = False
    DRAWS: ClassVar[bool] = False
    WRITES: ClassVar[bool] = False
    OWN_TEXTS: ClassVar[bool] = False
    ARTICLE: ClassVar[bool] = False
    OF_THIS_MODEL: ClassVar[bool] = False
    READS: ClassVar[tuple[str, ...]] = ()
    SAID: ClassVar[tuple[str, ...]] = ()
    AGAIN: ClassVar[bool] = True
    METHODS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for shared in ("wanted", "looking", "settings"):  # these properties raise for bad fields
            getattr(self, shared, None)
        if "seed" in slots(type(self)):
            check_seed(vars(self)["seed"])

    def answered(self, reading: "Reading", chosen: "Chosen | None") -> "Answer[R_co]":
        """The answer of `ANSWER`, with its command known; `chosen` is None without `wanted`."""
        found = self.found(reading, chosen)
        answer = found if isinstance(found, Answer) else Answer(found)
        self.known_to(answer.result)
        return answer

    def found(self, reading: "Reading", chosen: "Chosen | None") -> "R_co | Answer[R_co]":
        """Call `ANSWER`: its result, or an `Answer`."""
        of = [reading] if chosen is None else [reading, chosen]
        return named(self.ANSWER)(*of, self)  # type: ignore[no-any-return]

    def known_to(self, result: Any) -> None:
        """Store on a result the command that asks for it again, where there is one."""
        options, every = slots(type(self)), fields(cast(Any, self))
        values = {each.name: (getattr(self, each.name), each.default) for each in every}
        unsaid = [pair for name, pair in values.items() if name not in options]  # fields of the library alone
        if not self.AGAIN or any(value != usual and not isinstance(value, Files) for value, usual in unsaid):
            return
        own = [name for name in options if name not in self.READS]
        own.sort(key=lambda name: bool(options[name].option.names))  # positional arguments first
        said = words(self, own)
        object.__setattr__(result, "asked_by", (verb_of(self), *self.SAID, *said))
        if result.asks_alone:
            object.__setattr__(result, "asked_of", named("attnscope.session.request:digests")(said))

    def check_names(self, chosen: "Chosen", queries: "Tokens | None", keys: "Tokens") -> None:
        """Raises `InputError` for named tokens that are not there."""
        named(self.NAMES)(chosen, queries, keys, self)

    def into(self, files: Files) -> "Question[R_co]":
        """The question with these output files; `InputError` for files that it has no form for."""
        return self

    @property
    def whole(self) -> bool:
        """True where the model runs to its end whichever layers are looked at."""
        return False

    @property
    def plan_check(self) -> "Callable[..., None] | None":
        """A check in place of `NAMES` that gets the model's plan before weights are read, or None."""
        return None

    def ranked(self, result: Any) -> bool:
        """True where a page of the answer shows the weights of its best heads."""
        return False

    def reads(self, inputs: "Inputs") -> "tuple[Question[R_co], Inputs]":
        """The question and the inputs, each completed by the other; `InputError` for unused inputs."""
        return self, inputs

    def purpose(self, inputs: "Inputs") -> Purpose:
        """The loading purpose for these inputs; `InputError` for inputs that the question excludes."""
        return self.PURPOSE

    @property
    def wanted(self) -> "Wanted | None":
        """The heads asked about; None for a question about the whole model."""
        return None

    @property
    def over(self) -> str | None:
        """Short name of the question over many texts together; None where each text is answered alone.

        `InputError` for a question that many texts cannot be asked.
        """
        return None

    def apart(self, opened: "Opened") -> bool:
        """True where this model answers many texts one by one, whatever `over` returns."""
        return False

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        """True where these options mean this form of the verb; the first such form is taken."""
        return True

    @classmethod
    def lacking(cls, options: str) -> str:
        """Error message for a required option that is missing."""
        return f"missing option '{options}'"

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        """Error message for options that only other forms of the verb have."""
        return f"{options[0]} goes with another question: leave it out"


class Alone(Question[R_co]):
    """A question that no text is read for, and no model but what it names itself.

    `ANSWER` is given the question and a listener. `TEXTS` are fields that are texts.
    """

    TEXTS: ClassVar[tuple[str, ...]] = ()

    @property
    def files_read(self) -> tuple[Any, ...]:
        """Files that a stored answer has to name, each with its SHA-256."""
        return ()

    def answer(
        self, request: "ModelRequest", listener: "Listener", opening: "Opening | None" = None
    ) -> Answer[R_co]:
        """Answer the question without a reading."""
        found: Answer[R_co] = Answer(named(self.ANSWER)(self, listener))
        self.known_to(found.result)
        return found


class OfModel(Alone[R_co]):
    """A question of a model alone.

    `ANSWER` is given the model that is open, which heads of it are meant, the question and a listener.
    """

    def answer_in(self, opened: "Opened", listener: "Listener") -> R_co:
        """Answer the question for an open model and its chosen heads."""
        found: R_co = named(self.ANSWER)(opened, opened.chosen, self, listener)
        self.known_to(found)
        return found

    def answer(
        self, request: "ModelRequest", listener: "Listener", opening: "Opening | None" = None
    ) -> Answer[R_co]:
        """Open the model by `opening`, by default `open_model`, and answer the question."""
        # bad questions are refused before the model is looked for
        inputs = self.reads(named("attnscope.session.request:Inputs")())[1]
        opened = (opening or named(_OPENING))(request, inputs, self.wanted, self.PURPOSE, listener)
        return Answer(self.answer_in(opened, listener))


class OfSides(OfModel[R_co]):
    """A question of two sides or of many texts, which opens the model of each by itself, or none.

    `ANSWER` is given the request of the first model, what opens one, the question and a listener.
    """

    def answer(
        self, request: "ModelRequest", listener: "Listener", opening: "Opening | None" = None
    ) -> Answer[R_co]:
        found: Answer[R_co] = named(self.ANSWER)(request, opening or named(_OPENING), self, listener)
        self.known_to(found.result)
        return found


def verb_of(question: object) -> str:
    """The command-line verb of a question."""
    package = type(question).__module__.rpartition(".")[0]
    return next((name for name, verb in registered().items() if verb.package == package), package)


def named(place: str) -> Any:
    """The object at `module:name`, imported."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def form_of(forms: Sequence[type[Question[Any]]], given: Mapping[str, Any]) -> type[Question[Any]]:
    """The form of a verb that these options mean; `InputError` for options that it lacks."""
    meant = next(form for form in forms if form.meant_by(given))
    every, names = slots_of(forms), _names_in(meant, forms)
    if foreign := [every[name].option.name for name in given if name not in names]:
        raise InputError(meant.refused(foreign))
    return meant


def question_of(forms: Sequence[type[Question[Any]]], given: Mapping[str, Any]) -> Question[Any]:
    """The question that these options ask; `InputError` for a required option that is missing."""
    form = form_of(forms, given)
    own, names = slots(form), _names_in(form, forms)
    values = {name: each.default for name, each in own.items() if each.own is MISSING}
    values |= {names[name]: value for name, value in given.items()}
    for name, value in values.items():
        if value is MISSING:
            raise InputError(form.lacking(own[name].option.name))
    told = inspect.signature(form).parameters  # without fields that only choose the form
    return form(**{name: value for name, value in values.items() if name in told})


def _names_in(form: type[Question[Any]], forms: Sequence[type[Question[Any]]]) -> dict[str, str]:
    """Map from option names over all forms to this form's names, where it has them."""
    own = {slot.option: name for name, slot in slots(form).items()}
    called = {
        name: name if name in slots(form) else own.get(slot.option) for name, slot in slots_of(forms).items()
    }
    return {name: each for name, each in called.items() if each is not None}


class Taking(Protocol[P, T_co]):
    """Type of a decorator that replaces a function's question parameter by the question's fields."""

    @overload
    def __call__(self, function: Callable[[T_co], R]) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[[S, T_co], R]) -> Callable[Concatenate[S, P], R]: ...
    @overload
    def __call__(self, function: Callable[[S, S, T_co], R]) -> Callable[Concatenate[S, S, P], R]: ...


def taking(question: Callable[P, T_co]) -> Taking[P, T_co]:
    """Decorator: the function's last parameter, a question, becomes the question's fields.

    Callers give the fields by position or by name. A function without a docstring gets the question's.
    """

    def wrapped(function: Any) -> Any:
        own = inspect.signature(function)
        made = _function_of(question, function, own.return_annotation, *[*own.parameters.values()][:-1])
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(made, name, getattr(function, name) or getattr(question, name))
        return made

    return wrapped


class Either(Protocol[P, R_co, Q, S_co]):
    """Type of a method with two signatures, one for each form of a verb."""

    @overload
    def __call__(self, *given: P.args, **named: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *given: Q.args, **named: Q.kwargs) -> S_co: ...


def asks(question: Callable[P, Question[R]]) -> Callable[Concatenate[Any, P], R]:
    """A library method that asks this question; its parameters are the question's fields."""
    method: Any = _Named(_method(question, _answer_of(question)))
    return method  # type: ignore[no-any-return]


def asks_each(question: Callable[P, Question[Any]]) -> "Callable[Concatenate[Any, P], Prompts]":
    """A library method that asks this question of every prompt."""
    method: Any = _Named(_method(question, "Prompts"))
    return method  # type: ignore[no-any-return]


def either(
    one: Callable[Concatenate[Any, P], R_co], other: Callable[Concatenate[Any, Q], S_co]
) -> Either[P, R_co, Q, S_co]:
    """A library method of two forms: `other` where every keyword it requires is given, else `one`."""
    one, other = (cast(_Named, each).function for each in (one, other))
    mine, others = ({**inspect.signature(each).parameters} for each in (one, other))
    own, *named_only = others.values()
    needs = {each.name for each in named_only if each.default is each.empty}

    def method(*given: Any, **named: Any) -> Any:
        return (other if needs <= {*named} else one)(*given, **named)

    taken = [
        each.replace(default=None) if each.default is each.empty and each.name != own.name else each
        for each in (mine | others | mine).values()
    ]
    method.__doc__ = f"{one.__doc__}\n    {other.__doc__}"
    gives = dict.fromkeys(inspect.signature(each).return_annotation for each in (one, other))
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        sorted(taken, key=lambda each: each.kind), return_annotation=" | ".join(gives)
    )
    return cast(Either[P, R_co, Q, S_co], _Named(method, one, other))


class _Named:
    """A class attribute that becomes its function, named after the attribute, and its alternative forms."""

    def __init__(self, function: Any, *forms: Any) -> None:
        self.function, self.forms = function, forms

    def __set_name__(self, owner: type, name: str) -> None:
        for each in (self.function, *self.forms):
            each.__name__, each.__qualname__ = name, f"{owner.__qualname__}.{name}"
            each.__module__ = owner.__module__
        setattr(owner, name, self.function)


def _answer_of(question: Any) -> str:
    """Name of a question's result type."""
    bases = (base for each in question.__mro__ for base in vars(each).get("__orig_bases__", ()))
    answer = next(get_args(base)[0] for base in bases if issubclass(get_origin(base) or base, Question))
    return str(getattr(answer, "__forward_arg__", answer))


def _method(question: Any, answer: str) -> Any:
    method = _function_of(question, lambda self, asked: self.ask(asked), answer, _SELF)
    method.__doc__ = question.__doc__
    return method


_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _function_of(question: Any, call: Any, gives: Any, *own: inspect.Parameter) -> Any:
    """A function with `own` parameters and the question's fields that calls `call`."""
    taken = [
        each.replace(annotation=get_args(each.annotation)[0])
        if get_origin(each.annotation) is Annotated
        else each
        for each in inspect.signature(question).parameters.values()
    ]
    names, order = [each.name for each in taken], [*slots(question)]
    named_only = [each for each in taken if each.kind is inspect.Parameter.KEYWORD_ONLY]
    placed = [each for each in taken if each not in named_only]
    named_only = sorted(named_only, key=lambda each: [*order, each.name].index(each.name))

    def function(*given: Any, **named: Any) -> Any:
        for name in named:
            if name not in names:
                near = nearest(name, names)
                meant = f": did you mean {near[0]}?" if near else f": {', '.join(names)}"
                raise TypeError(f"{function.__name__}() has no '{name}'{meant}")
        try:
            signature.bind(*given, **named)
        except TypeError as error:
            raise TypeError(f"{function.__name__}(): {error}") from None
        return call(*given[: len(own)], question(*given[len(own) :], **named))

    signature = inspect.Signature([*own, *placed, *named_only], return_annotation=gives)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
