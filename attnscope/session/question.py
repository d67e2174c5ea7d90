"""Questions as data: each is one frozen dataclass, and its fields say once how it is asked (`option`).

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
    """Whether a file for each head is meant: `h-{layer}-{head}.png`."""
    return LAYER in file.name or HEAD in file.name


@dataclass(frozen=True)
class Files:
    """The files that an answer goes to; none where a program asks.

    `fit` says whether a page has room for all heads of two sides.
    """

    places: tuple[Path, ...] = ()
    fit: Callable[[Sequence[Any]], bool] | None = None

    @property
    def pages(self) -> tuple[Path, ...]:
        """Those that are pages for a browser."""
        return tuple(file for file in self.places if file.suffix.lower() == PAGE)

    @property
    def of_each_head(self) -> tuple[Path, ...]:
        """Those that are one of each head."""
        return tuple(filter(is_of_each_head, self.places))

    @property
    def paged(self) -> bool:
        """Whether a page of all that is chosen is among them, and not of each head alone."""
        return not {*self.pages} <= {*self.of_each_head}


@dataclass(frozen=True, eq=False)
class Answer(Generic[R_co]):
    """An answer, and what of it is looked at: `focus`, by the names of a `Focus` of `render`.

    `every_head` gives what there is of every head alone, for a file of each; `beside` what a page has beside
    the answer, by the names of a `Beside` there. What a picture depends on, beside what is read, is
    `drawn_by`. `links` has what is held against the links of other texts, `exceeded` says which threshold is.
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
        for shared in ("wanted", "looking", "settings"):  # refused in their words
            getattr(self, shared, None)
        if "seed" in slots(type(self)):
            check_seed(vars(self)["seed"])

    def answered(self, reading: "Reading", chosen: "Chosen | None") -> "Answer[R_co]":
        """The answer; of a question without `wanted` heads nothing is chosen."""
        found = self.found(reading, chosen)
        answer = found if isinstance(found, Answer) else Answer(found)
        self.known_to(answer.result)
        return answer

    def found(self, reading: "Reading", chosen: "Chosen | None") -> "R_co | Answer[R_co]":
        """What `ANSWER` finds."""
        of = [reading] if chosen is None else [reading, chosen]
        return named(self.ANSWER)(*of, self)  # type: ignore[no-any-return]

    def known_to(self, result: Any) -> None:
        """From here on a result knows what it answers, where that can be asked again."""
        options, every = slots(type(self)), fields(cast(Any, self))
        values = {each.name: (getattr(self, each.name), each.default) for each in every}
        unsaid = [pair for name, pair in values.items() if name not in options]  # what only a program asks
        if not self.AGAIN or any(value != usual and not isinstance(value, Files) for value, usual in unsaid):
            return
        own = [name for name in options if name not in self.READS]
        own.sort(key=lambda name: bool(options[name].option.names))  # what has no name comes first
        said = words(self, own)
        object.__setattr__(result, "asked_by", (verb_of(self), *self.SAID, *said))
        if result.asks_alone:
            object.__setattr__(result, "asked_of", named("attnscope.session.request:digests")(said))

    def check_names(self, chosen: "Chosen", queries: "Tokens | None", keys: "Tokens") -> None:
        """`InputError` for tokens that are not there."""
        named(self.NAMES)(chosen, queries, keys, self)

    def into(self, files: Files) -> "Question[R_co]":
        """The question whose answer goes to these files; `InputError` for those that it has no form for."""
        return self

    @property
    def whole(self) -> bool:
        """Whether the model runs to its end whatever is looked at."""
        return False

    @property
    def plan_check(self) -> "Callable[..., None] | None":
        """A check in the place of `NAMES` that is given the plan of the model, before weights are read."""
        return None

    def ranked(self, result: Any) -> bool:
        """Whether a page of the answer has the weights of its best heads beside it."""
        return False

    def reads(self, inputs: "Inputs") -> "tuple[Question[R_co], Inputs]":
        """The question and the inputs, each completed by the other; `InputError` for inputs without a use."""
        return self, inputs

    def purpose(self, inputs: "Inputs") -> Purpose:
        """What a model is loaded for, of what is read; `InputError` for what goes with none."""
        return self.PURPOSE

    @property
    def wanted(self) -> "Wanted | None":
        """Which heads; None of a question about all of the model."""
        return None

    @property
    def over(self) -> str | None:
        """What is asked of many texts together, in a few words; None where each is answered by itself.

        `InputError` for what many texts are not asked.
        """
        return None

    def apart(self, opened: "Opened") -> bool:
        """Whether this model answers many texts one after the other, whatever `over` says."""
        return False

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        """Whether these options mean this form of a verb that has several: the first that says so does."""
        return True

    @classmethod
    def lacking(cls, options: str) -> str:
        """What is said where this option has to be given."""
        return f"missing option '{options}'"

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        """What is said of options that other forms of the verb have."""
        return f"{options[0]} goes with another question: leave it out"


class Alone(Question[R_co]):
    """A question that no text is read for, and no model but what it names itself.

    `ANSWER` is given the question and a listener. `TEXTS` are fields that are texts.
    """

    TEXTS: ClassVar[tuple[str, ...]] = ()

    @property
    def files_read(self) -> tuple[Any, ...]:
        """The files that a stored answer has to name, each with its SHA-256."""
        return ()

    def answer(
        self, request: "ModelRequest", listener: "Listener", opening: "Opening | None" = None
    ) -> Answer[R_co]:
        """The answer."""
        found: Answer[R_co] = Answer(named(self.ANSWER)(self, listener))
        self.known_to(found.result)
        return found


class OfModel(Alone[R_co]):
    """A question of a model alone.

    `ANSWER` is given the model that is open, which heads of it are meant, the question and a listener.
    """

    def answer_in(self, opened: "Opened", listener: "Listener") -> R_co:
        """The answer of a model that is open, and of what was chosen of it."""
        found: R_co = named(self.ANSWER)(opened, opened.chosen, self, listener)
        self.known_to(found)
        return found

    def answer(
        self, request: "ModelRequest", listener: "Listener", opening: "Opening | None" = None
    ) -> Answer[R_co]:
        """The answer of a model that is still to be opened, by `opening` where it is not `open_model`."""
        # refuses what it can before the model is looked for
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
    """What a question is called on the command line."""
    package = type(question).__module__.rpartition(".")[0]
    return next((name for name, verb in registered().items() if verb.package == package), package)


def named(place: str) -> Any:
    """What stands at `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def form_of(forms: Sequence[type[Question[Any]]], given: Mapping[str, Any]) -> type[Question[Any]]:
    """The form of a verb that these options mean; `InputError` for options that it has not."""
    meant = next(form for form in forms if form.meant_by(given))
    every, names = slots_of(forms), _names_in(meant, forms)
    if foreign := [every[name].option.name for name in given if name not in names]:
        raise InputError(meant.refused(foreign))
    return meant


def question_of(forms: Sequence[type[Question[Any]]], given: Mapping[str, Any]) -> Question[Any]:
    """The question that these options ask; `InputError` for one that has to be given and is not."""
    form = form_of(forms, given)
    own, names = slots(form), _names_in(form, forms)
    values = {name: each.default for name, each in own.items() if each.own is MISSING}
    values |= {names[name]: value for name, value in given.items()}
    for name, value in values.items():
        if value is MISSING:
            raise InputError(form.lacking(own[name].option.name))
    told = inspect.signature(form).parameters  # all but what says by itself that this form is meant
    return form(**{name: value for name, value in values.items() if name in told})


def _names_in(form: type[Question[Any]], forms: Sequence[type[Question[Any]]]) -> dict[str, str]:
    """What this form calls the options of all forms, where it has them."""
    own = {slot.option: name for name, slot in slots(form).items()}
    called = {
        name: name if name in slots(form) else own.get(slot.option) for name, slot in slots_of(forms).items()
    }
    return {name: each for name, each in called.items() if each is not None}


class Taking(Protocol[P, T_co]):
    """Makes such a function of one that takes the question, or such a method."""

    @overload
    def __call__(self, function: Callable[[T_co], R]) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[[S, T_co], R]) -> Callable[Concatenate[S, P], R]: ...
    @overload
    def __call__(self, function: Callable[[S, S, T_co], R]) -> Callable[Concatenate[S, S, P], R]: ...


def taking(question: Callable[P, T_co]) -> Taking[P, T_co]:
    """For a function that takes such a question: its caller gives the fields, by position or by name.

    One that does not say what it does answers the question, in whose words that is said.
    """

    def wrapped(function: Any) -> Any:
        own = inspect.signature(function)
        made = _function_of(question, function, own.return_annotation, *[*own.parameters.values()][:-1])
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(made, name, getattr(function, name) or getattr(question, name))
        return made

    return wrapped


class Either(Protocol[P, R_co, Q, S_co]):
    """Asks one form of a verb or the other."""

    @overload
    def __call__(self, *given: P.args, **named: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *given: Q.args, **named: Q.kwargs) -> S_co: ...


def asks(question: Callable[P, Question[R]]) -> Callable[Concatenate[Any, P], R]:
    """A method that asks this question."""
    method: Any = _Named(_method(question, _answer_of(question)))
    return method  # type: ignore[no-any-return]


def asks_each(question: Callable[P, Question[Any]]) -> "Callable[Concatenate[Any, P], Prompts]":
    """A method that asks this question of every prompt."""
    method: Any = _Named(_method(question, "Prompts"))
    return method  # type: ignore[no-any-return]


def either(
    one: Callable[Concatenate[Any, P], R_co], other: Callable[Concatenate[Any, Q], S_co]
) -> Either[P, R_co, Q, S_co]:
    """A method of two forms: `other` where every keyword that it requires is given, else `one`."""
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
    """A function that takes the name it has in its class, and so do the forms that it chooses from."""

    def __init__(self, function: Any, *forms: Any) -> None:
        self.function, self.forms = function, forms

    def __set_name__(self, owner: type, name: str) -> None:
        for each in (self.function, *self.forms):
            each.__name__, each.__qualname__ = name, f"{owner.__qualname__}.{name}"
            each.__module__ = owner.__module__
        setattr(owner, name, self.function)


def _answer_of(question: Any) -> str:
    """What a question says that its answer is."""
    bases = (base for each in question.__mro__ for base in vars(each).get("__orig_bases__", ()))
    answer = next(get_args(base)[0] for base in bases if issubclass(get_origin(base) or base, Question))
    return str(getattr(answer, "__forward_arg__", answer))


def _method(question: Any, answer: str) -> Any:
    method = _function_of(question, lambda self, asked: self.ask(asked), answer, _SELF)
    method.__doc__ = question.__doc__
    return method


_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _function_of(question: Any, call: Any, gives: Any, *own: inspect.Parameter) -> Any:
    """A function of the fields of `question`: `call` is given its `own` parameters, and the question."""
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
