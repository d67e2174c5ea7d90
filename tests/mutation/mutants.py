"""A module's source -> its mutants: each differs from it in one operator, constant, condition or bound.

Texts stay as they are, and so do annotations, which only the type checker reads.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}
_OPPOSITES = (("min", "max"), ("any", "all"), ("amin", "amax"), ("minimum", "maximum"))
_NAMES = {one: other for pair in _OPPOSITES for one, other in (pair, pair[::-1])}
_LEGIBLE = 25  # characters of code by which a reader knows the place again


@dataclass(frozen=True)
class Mutant:
    """One change: in which function, what becomes of what, and the whole source with it.

    `line` is where it stands, `reached` the lines of which one must run for the change to matter; None where
    it matters as soon as the module is imported. `in_body` says whether it lies in the body of a function, so
    that exchanging that is enough.
    """

    function: str
    change: str
    line: int
    reached: range | None
    in_body: bool
    source: str

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by, wherever its lines move to."""
        return self.function, self.change


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in the tree: in a field of another, which hangs in the place `above`."""

    above: "_Place | None"
    holder: ast.AST
    field: str
    index: int | None

    @property
    def node(self) -> ast.AST:
        held = getattr(self.holder, self.field)
        return held if self.index is None else held[self.index]

    def put(self, node: ast.AST | None) -> None:
        if self.index is None:
            setattr(self.holder, self.field, node)
        else:
            getattr(self.holder, self.field)[self.index] = node

    def upwards(self) -> Iterator["_Place"]:
        """This place, and those that it lies in, up to a statement of the module."""
        yield self
        if self.above is not None:
            yield from self.above.upwards()


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(source)
    made: list[Mutant] = []
    alike: Counter[tuple[str, str]] = Counter()
    for place in list(_places(tree, None)):
        old, shown, function = place.node, _legible(place), _function(place)
        before = ast.unparse(shown.node)
        for new in _changes(place):
            place.put(new)
            change, text = f"{before} -> {ast.unparse(shown.node)}", ast.unparse(tree)
            place.put(old)
            alike[function, change] += 1
            again = alike[function, change]
            told = change if again == 1 else f"{change} (no. {again})"
            made.append(Mutant(function, told, _lines(place).start, _reached(place), _in_body(place), text))
    return made


def _places(holder: ast.AST, above: _Place | None) -> Iterator[_Place]:
    """The places of all code below a node: no annotations, and nothing that only a type checker reads."""
    for field, held in ast.iter_fields(holder):
        for index, node in enumerate(held if isinstance(held, list) else [held]):
            if isinstance(node, ast.AST) and field not in ("annotation", "returns"):
                place = _Place(above, holder, field, index if isinstance(held, list) else None)
                if not (field == "test" and isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"):
                    yield place
                    yield from _places(node, place)


def _changes(place: _Place) -> Iterator[ast.AST]:
    """What may stand in a place instead of its node."""
    match node := place.node:
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.Name() if node.id in _NAMES:
            yield _with(node, id=_NAMES[node.id])
        case ast.Attribute() if node.attr in _NAMES:
            yield _with(node, attr=_NAMES[node.attr])
        case ast.Slice():
            yield from (_with(node, **{end: None}) for end in ("lower", "upper") if getattr(node, end))
        case _ if type(node) in _OPERATORS:
            yield _OPERATORS[type(node)]()
    if place.field in ("test", "ifs") and not _is_turned_round_anyway(node):
        yield ast.UnaryOp(ast.Not(), node)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_turned_round_anyway(condition: ast.AST) -> bool:
    """Whether the change of an operator in it says the opposite already."""
    match condition:
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return True
    return False


def _legible(place: _Place) -> _Place:
    """The place of the code around a change that is long enough to be known again."""
    best = place
    for each in place.upwards():
        if not isinstance(each.node, ast.expr | ast.expr_context | ast.operator | ast.cmpop | ast.boolop):
            if isinstance(each.node, ast.AugAssign | ast.Break | ast.Continue):
                return each
            if not isinstance(each.node, ast.keyword | ast.comprehension):
                return best
        best = each
        if isinstance(each.node, ast.expr) and len(ast.unparse(each.node)) >= _LEGIBLE:
            return best
    return best


def _function(place: _Place) -> str:
    """The dotted name of the function and classes that a place is in, `module` outside of all."""
    above = [each.holder for each in place.upwards()][::-1]
    return ".".join(each.name for each in above if isinstance(each, _NAMED)) or "module"


_NAMED = ast.FunctionDef | ast.ClassDef


def _lines(place: _Place) -> range:
    """The lines of the statement that a place is in; of one with a body, those of its head."""
    nodes = [each.node for each in place.upwards()]
    statement = next(each for each in nodes if isinstance(each, ast.stmt))
    body = getattr(statement, "body", None)
    last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, last + 1)


def _in_body(place: _Place) -> bool:
    """Whether it is the body of a function that a place is in, and not a decorator or a default."""
    fields = (each.field for each in place.upwards() if isinstance(each.holder, ast.FunctionDef))
    return next(fields, None) == "body"


def _reached(place: _Place) -> range | None:
    """The lines that run when a place does; of a default or a decorator, those of the function it is for."""
    for each in place.upwards():
        if isinstance(each.holder, ast.FunctionDef | ast.Lambda):
            if isinstance(each.holder, ast.FunctionDef) and each.field == "body":
                return _lines(place)
            body = each.holder.body if isinstance(each.holder.body, list) else [each.holder.body]
            return range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1)
    return None
