"""What comes from outside is read in attnscope/incoming.py alone; whoever else opens a file is named here."""

import ast
from pathlib import Path

import pytest

import attnscope

HOUSE = Path(attnscope.__file__).parent
MAY_READ = {  # and what, which is bounded by whoever wrote it
    "incoming.py": "what a user names or pipes in",
    "process/machine.py": "what the system says, in /proc and /sys",
    "model/source/": "weight files, by their heads and hashes; the hub's note of a revision",
    "session/corpus/store/": "files of a corpus, in part and as they are read, and those of its run",
    "session/corpus/lock.py": "the lock of a corpus run",
    "session/corpus/identity.py": "code that takes part",
    "session/corpus/engine/": "a model's settings, and what passes between processes",
    "render/web/assets.py": "the package's own scripts and styles",
    "render/script/again/": "the programs that run alone: the file of the weights, for its hash",
    "render/script/figures.py": "the package's own programs, of which a script is made",
    "demo/": "the package's own model, and the programs that train it",
    "process/ending.py": "nothing: it opens new files, to be written to",
    "process/standard_error.py": "nothing: it opens what swallows all",
    "cli/streams.py": "the standard streams, to be written to",
    "explore/app.py": "the same",
    "cli/commands/explore.py": "whether standard input is a terminal",
}
READS = {"read_text", "read_bytes", "readinto", "fromfile", "loadtxt", "genfromtxt", "memmap"}
OPENS = {("np", "load"), ("numpy", "load"), ("Image", "open"), ("soundfile", "read"), ("os", "open")}
OPENS |= {
    ("soundfile", "SoundFile"),
    ("zipfile", "ZipFile"),
    ("io", "open"),
    ("os", "read"),
}


def readings(source: str) -> list[str]:
    """The lines of a module that read a file, a stream or a device."""
    found = []
    for node in ast.walk(ast.parse(source)):
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


def is_named(file: str) -> bool:
    return any(file.startswith(place) if place.endswith("/") else file == place for place in MAY_READ)


def test_nobody_else_in_the_house_reads_a_file() -> None:
    files = {str(path.relative_to(HOUSE)): path.read_text("utf-8") for path in HOUSE.rglob("*.py")}
    assert len(files) > 400
    found = {name: readings(text) for name, text in files.items() if not is_named(name)}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_everybody_who_is_named_does_read() -> None:
    for place in MAY_READ:
        own = HOUSE / place
        modules = own.rglob("*.py") if own.is_dir() else [own]
        assert any(readings(module.read_text("utf-8")) for module in modules), place


@pytest.mark.parametrize(
    "line",
    [
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
)
def test_a_reader_beside_it_is_found(line: str) -> None:
    assert readings(line)


def test_what_is_in_memory_already_is_no_file() -> None:
    assert not readings("Image.open(io.BytesIO(content)); recipe.open(); archive.open(member)")
