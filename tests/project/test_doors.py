"""One door each for float64, for reading and for printing; text files are the same on every system.

Programs of their own are none of the house: those that train the bundled models, and those that are written
into files and run there on the processor.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

import attnscope
from attnscope.reference import EXACT, brought, exact, place

HOUSE = Path(attnscope.__file__).parent
ROOT = HOUSE.parent
Nodes = Sequence[ast.AST]
WIDE = ("float64", "double", "complex128", "cdouble")
TAKES_A_TYPE = ("to", "type", "type_as")
PROGRAMS = [f"verbs/{verb}/again.py" for verb in ("ablate", "compose", "find", "flow")]
MAY_WIDEN = ("reference.py", "demo/train/", "render/script/again.py", *PROGRAMS)
MAY_PRINT = {  # and what
    "render/terminal/console.py": "whatever is laid out for a terminal",
    "process/ending.py": "one line of its own, and what ends the streams",
    "process/standard_error.py": "the traceback of a bug",
    "cli/output.py": "lines, documents whose texts are escaped, and what takes the spinner away",
    "explore/app.py": "the same, and its modes as they were",
    "render/script/again.py": "the programs that are written into files and run alone",
    "demo/train/": "the programs that train the package's own models",
}
MAY_READ = {  # and what, which is bounded by whoever wrote it
    "incoming.py": "what a user names or pipes in",
    "process/machine.py": "what the system says, in /proc and /sys",
    "register.py": "what installed distributions say of their entry points",
    "model/source/": "weight files, by their heads and hashes; the hub's note of a revision",
    "verbs/corpus/store/": "files of a corpus, in part and as they are read, and those of its run",
    "verbs/corpus/identity.py": "code that takes part",
    "verbs/corpus/engine/": "a model's settings, and what passes between processes",
    "render/web/page.py": "the package's own scripts and styles",
    "render/script/again.py": "the programs that run alone: the file of the weights, for its hash",
    "render/script/__init__.py": "the package's own programs, of which a script is made",
    "demo/": "the package's own model, and the programs that train it",
    "process/ending.py": "nothing: it opens new files, to be written to",
    "process/standard_error.py": "nothing: it opens what swallows all",
    "cli/output.py": "the standard streams, to be written to",
    "explore/app.py": "the same",
    "verbs/explore/command.py": "whether standard input is a terminal",
}
PRINTS = {("typer", "echo"), ("typer", "secho"), ("click", "echo"), ("click", "secho"), ("os", "write")}
CONSOLES = {"Console", "print"}
READS = {"read_text", "read_bytes", "readinto", "fromfile", "loadtxt", "genfromtxt", "memmap"}
OPENS = {("np", "load"), ("numpy", "load"), ("Image", "open"), ("soundfile", "read"), ("os", "open")}
OPENS |= {("soundfile", "SoundFile"), ("zipfile", "ZipFile"), ("io", "open"), ("os", "read")}


def nodes_of(source: str) -> Nodes:
    return tuple(ast.walk(ast.parse(source)))


def ways_around(nodes: Nodes) -> list[str]:
    """What in a module would make a tensor float64 wherever that happens to lie."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            if node.attr in WIDE:
                found.append(f"line {node.lineno}: torch.{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "double" and not node.args:
                found.append(f"line {node.lineno}: .double()")
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if node.func.attr in TAKES_A_TYPE and any(
                isinstance(each, ast.Name) and each.id == "EXACT" for each in given
            ):
                found.append(f"line {node.lineno}: .{node.func.attr}(EXACT)")
    return found


def printing(nodes: Nodes) -> list[str]:
    """The lines of a module that print, make a console, or write to a standard stream."""
    found = []
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        named = isinstance(function, ast.Name) and function.id in CONSOLES
        owned = isinstance(function, ast.Attribute) and (
            (ast.unparse(function.value), function.attr) in PRINTS
            or (
                function.attr in ("write", "writelines")
                and ast.unparse(function.value).startswith(("sys.std", "sys.__std"))
            )
            or (function.attr == "Console")
        )
        if named or owned:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def readings(nodes: Nodes) -> list[str]:
    """The lines of a module that read a file, a stream or a device."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("stdin", "__stdin__"):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Call) and _reads(node):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def _reads(call: ast.Call) -> bool:
    function, given = call.func, [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if (owner, function.attr) in OPENS:
        in_memory = given and isinstance(given[0], ast.Call) and ast.unparse(given[0].func) == "io.BytesIO"
        return not in_memory
    mode = function.attr == "open" and any(isinstance(each, ast.Constant) for each in given)
    return function.attr in READS or mode


def unsaid(nodes: Nodes) -> Iterator[str]:
    """What each call that opens a text file leaves to the system, with its line."""
    for call in nodes:
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        named = {keyword.arg for keyword in call.keywords}
        mode = mode_of(call, 0 if isinstance(call.func, ast.Attribute) else 1) if name == "open" else None
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "formatter":
            continue  # which writes a help of click's
        if name == "read_text" and not call.args and "encoding" not in named:
            yield f"{call.lineno}: encoding"
        if name == "write_text" and len(call.args) < 2 and "encoding" not in named:
            yield f"{call.lineno}: encoding"
        if name == "write_text" and "newline" not in named:
            yield f"{call.lineno}: newline"
        if mode is not None and "b" not in mode and "encoding" not in named:
            yield f"{call.lineno}: encoding"


def mode_of(call: ast.Call, place: int) -> str | None:
    """The mode of `open(file, mode)` or `path.open(mode)`; None for an `open` of anything else."""
    given = next((each.value for each in call.keywords if each.arg == "mode"), None)
    given = call.args[place] if given is None and len(call.args) > place else given
    if given is None:
        return "r" if isinstance(call.func, ast.Name) else None
    told = given.value if isinstance(given, ast.Constant) else None
    return told if isinstance(told, str) and set(told) <= set("rwaxbt+") else None


LOOKED_FOR: dict[str, Callable[[Nodes], list[str]]] = {
    "float64": ways_around,
    "printing": printing,
    "reading": readings,
    "unsaid": lambda nodes: [*unsaid(nodes)],
}
MAY = {"float64": MAY_WIDEN, "printing": tuple(MAY_PRINT), "reading": tuple(MAY_READ), "unsaid": ()}


def is_named(file: str, places: tuple[str, ...]) -> bool:
    return any(file.startswith(each) if each.endswith("/") else file == each for each in places)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, list[str]]]:
    """By what is looked for, the lines of every module of the house that have it."""
    made: dict[str, dict[str, list[str]]] = {what: {} for what in LOOKED_FOR}
    for path in HOUSE.rglob("*.py"):
        nodes = nodes_of(path.read_text("utf-8"))
        for what, lines in LOOKED_FOR.items():
            made[what][path.relative_to(HOUSE).as_posix()] = lines(nodes)
    return made


@pytest.mark.parametrize("what", LOOKED_FOR)
def test_no_other_module_widens_prints_or_reads(found: dict[str, dict[str, list[str]]], what: str) -> None:
    assert len(found[what]) > 400
    others = {file: lines for file, lines in found[what].items() if not is_named(file, MAY[what])}
    assert {file: lines for file, lines in others.items() if lines} == {}


def test_every_module_that_may_print_or_read_does_so(found: dict[str, dict[str, list[str]]]) -> None:
    for what in ("printing", "reading"):
        for each in MAY[what]:
            lines = [line for file, told in found[what].items() if is_named(file, (each,)) for line in told]
            inherits = each.endswith(".py") and "(Console)" in (HOUSE / each).read_text("utf-8")
            assert lines or inherits, each


@pytest.mark.parametrize("folder", ["benchmarks", "docs"])
def test_encoding_and_line_ends_of_every_text_file_are_said(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    left = {file.name: [*unsaid(nodes_of(file.read_text("utf-8")))] for file in files}
    assert {name: lines for name, lines in left.items() if lines} == {}


WAYS = {
    "float64": [
        "x.double()",
        "torch.zeros(3, dtype=torch.float64)",
        "x.to(torch.double)",
        "x.to(EXACT)",
        "x.to(device, dtype=EXACT)",
    ],
    "printing": [
        "print('a')",
        "print('a', file=sys.stderr)",
        "typer.echo(name)",
        "sys.stdout.write(name)",
        "sys.stderr.buffer.write(name)",
        "sys.__stdout__.write(name)",
        "Console().print(name)",
        "rich.console.Console(stderr=True)",
        "os.write(1, name)",
    ],
    "reading": [
        "open(path)",
        "path.open('rb')",
        "path.open(mode='r')",
        "os.open(path, os.O_RDONLY)",
        "Path(name).expanduser().read_text('utf-8')",
        "file.read_bytes()",
        "np.load(path, allow_pickle=False)",
        "with Image.open(path) as opened: pass",
        "soundfile.read(path)",
        "zipfile.ZipFile(path)",
        "sys.stdin.buffer.read()",
    ],
}
HARMLESS = {
    "float64": ["np.zeros(3, np.float64)", "exact(x)", "torch.zeros(3, dtype=EXACT)"],
    "printing": ["place.write(name)", "screen.print(name)", "say(name)", "os.open(name)"],
    "reading": ["Image.open(io.BytesIO(content))", "recipe.open()", "archive.open(member)"],
}


@pytest.mark.parametrize("what", WAYS)
def test_a_way_around_a_door_is_found_and_what_is_none_is_not(what: str) -> None:
    look = LOOKED_FOR[what]
    assert [line for line in WAYS[what] if not look(nodes_of(f"def shown(name):\n    {line}\n"))] == []
    assert [line for line in HARMLESS[what] if look(nodes_of(line))] == []


UNSAID = {
    "path.read_text()": ["1: encoding"],
    "path.read_text('utf-8')": [],
    "path.read_text(encoding='utf-8')": [],
    "path.write_text(text)": ["1: encoding", "1: newline"],
    "formatter.write_text(text)": [],
    "path.write_text(text, 'utf-8')": ["1: newline"],
    "path.write_text(text, 'utf-8', newline='')": [],
    "open(file)": ["1: encoding"],
    "open(file, 'w')": ["1: encoding"],
    "open(file, 'rb')": [],
    "open(file, mode='rb')": [],
    "open(file, encoding='ascii')": [],
    "\npath.open('w')": ["2: encoding"],
    "path.open('wb')": [],
    "Image.open(path)": [],
    "recipe.open()": [],
    "os.open('/dev/tty', os.O_RDWR)": [],
}


def test_what_is_left_unsaid_of_a_text_file_is_found() -> None:
    assert {code: [*unsaid(nodes_of(code))] for code in UNSAID} == UNSAID


def test_half_precision_becomes_float64_without_another_rounding():
    half = torch.tensor([[1 / 3, -2.5, 6e-5]], dtype=torch.bfloat16)
    assert exact(half).dtype == EXACT == torch.float64
    assert exact(half).tolist() == half.tolist()


def test_what_is_exact_already_is_handed_on_as_it_is():
    numbers = torch.zeros(2, 3, dtype=torch.float64)
    assert exact(numbers) is numbers


def test_a_gradient_goes_through():
    x = torch.ones(3, requires_grad=True)
    exact(x).sum().backward()
    assert x.grad is not None


def test_a_device_without_float64_is_left_for_the_processor(monkeypatch):
    """The same door on a device that refuses; the emulated accelerator's tests go through it for real."""

    def refuses(*_size, dtype, device):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    monkeypatch.setattr(torch, "empty", refuses)
    assert place(torch.device("mps")) == torch.device("cpu")
    assert place(torch.device("meta")) == torch.device("meta")


def test_what_is_brought_keeps_its_own_type_and_no_gradient():
    there = brought(torch.ones(2, dtype=torch.float16, requires_grad=True))
    assert (there.dtype, there.requires_grad) == (torch.float16, False)
