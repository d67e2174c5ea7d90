"""What is wrong with what came of an invocation.

Each finding has a sort and a cause, by which they are grouped.
"""

import csv
import io
import json
import re
import signal
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from .invocation import Invocation, Outcome, Stream

DOCUMENTED = {0, 2, 3, 4, 5, 6, 130, 141}
REFUSED = {2, 3, 4, 5, 6, 130}
PREFIX, NOTE, WROTE = "attnscope: ", "note: ", "wrote "
# said before any code of ours can run, of a variable of their own that says nothing they know
NOT_OURS = (
    "libgomp: ",
    "Invalid -W option ignored: ",
    "Unknown option TRANSFORMERS_VERBOSITY=",
    "Unknown option HF_HUB_VERBOSITY=",
)
NOT_OUR_FOLDERS = ("torchinductor_",)  # torch's own cache, which it keeps from one run to the next
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u061c\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
NO_NUMBER = re.compile(r"(?<![\w.'\"‘“@-])[-−+]?(nan|inf|infinity)(?![\w'\"’”])", re.IGNORECASE)
COLOUR = re.compile(r"(?:\x1b|\+ABs)\[[0-9;]*m")  # also as UTF-7 writes it
OF_A_TEXT = re.compile(r"attnscope: (standard input|[^ ]+):\d+: ")  # a line of a file with many texts
FORMULA = "=+-@\t\r"  # how a cell begins that a spreadsheet would run
WRITTEN = ("csv", "py", "html", "json", "svg")  # what is text, and may be shown on a terminal
SET_ASIDE = "set-aside.jsonl"  # texts of a corpus that could not be read, for whoever wants them
UNFINISHED = re.compile(r"(^|/)\.\d+\.part$")  # how a file is called until it is whole
STARTING = (
    "__init__.py",
    "__main__.py",
    "presenter.py",
    "version.py",
    "process/__init__.py",
    "process/ending.py",
)
FRAME = re.compile(r'File "([^"]+)", line (\d+),? in (\S+)')


@dataclass(frozen=True)
class Finding:
    sort: str
    cause: str
    detail: str


def findings(invocation: Invocation, outcome: Outcome) -> list[Finding]:
    """Everything that is wrong; a crash is told once and not for each of its consequences."""
    if invocation.kill is not None and outcome.code == -signal.SIGKILL and not outcome.stopped:
        return list(_halves(outcome))
    if invocation.interrupt is not None and invocation.cold and _around_the_program(outcome):
        return list(_halves(outcome))
    crashed = list(_crashes(invocation, outcome))
    return crashed or [finding for check in CHECKS for finding in check(invocation, outcome)]


def _around_the_program(outcome: Outcome) -> bool:
    """Whether an interrupt came before the program's answer to it stood, or when Python had taken it away.

    Then Python ends in its own way.
    """
    errors = _text(outcome.stderr)
    if outcome.code == -signal.SIGINT and errors.startswith(PREFIX) and errors.count("\n") == 1:
        return True
    files = [file for file, _, _ in FRAME.findall(errors) if "/attnscope/" in file and "/site-" not in file]
    early = all(file.rpartition("/attnscope/")[2] in STARTING for file in files)
    return (
        outcome.code in (1, -signal.SIGINT)
        and not outcome.stdout
        and early
        and (not errors or "KeyboardInterrupt" in errors)
    )


def differences(first: Outcome, again: Outcome, verbose: bool) -> list[Finding]:
    """What differs when an invocation is run again; what is `verbose` may in its numbers."""
    plain = _without_numbers if verbose else _as_it_is
    pairs = {
        "exit code": (first.code, again.code),
        "standard output": (plain(first.stdout), plain(again.stdout)),
        "standard error": (plain(first.stderr), plain(again.stderr)),
        "files": (_lasting(first.files), _lasting(again.files)),
    }
    return [
        Finding("differs when repeated", part, f"{_short(one)}\n  and then\n  {_short(other)}")
        for part, (one, other) in pairs.items()
        if one != other
    ]


def _lasting(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """All but the manifest of a corpus run, which tells when it began."""
    return {name: content for name, content in files.items() if not name.endswith("/manifest.json")}


def _without_numbers(content: bytes) -> bytes:
    return re.sub(rb" *[0-9.]+", b"0", content)


def _as_it_is(content: bytes) -> bytes:
    return content


def _short(what: object) -> str:
    return (what.decode("utf-8", "replace") if isinstance(what, bytes) else repr(what))[-700:]


def _crashes(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    errors = outcome.stderr.decode("utf-8", "replace")
    if outcome.stopped:
        yield Finding("stopped", f"{outcome.stopped} at {_place(outcome.stack, first=True)}", outcome.stack)
    elif outcome.code == 99:
        yield Finding("campaign", "the campaign itself", outcome.stack)
    elif "Traceback" in errors or "panicked at" in errors:
        yield Finding("traceback", f"{_raised(errors)} at {_place(errors)}", errors[-3000:])
    elif outcome.code < 0:
        place = _place(outcome.stack, first=True)
        yield Finding("signal", f"signal {-outcome.code} at {place}", outcome.stack + errors[-2000:])


def _place(trace: str, first: bool = False) -> str:
    """The last frame, and the last one of the program itself where that is another."""
    frames = [(file, name) for file, _, name in FRAME.findall(trace)]
    if not frames:
        return "?"
    if first:
        frames.reverse()
    short = [
        f"{re.sub(r'^.*?(site-packages|python3[.][0-9]+|attnscope)/', '', file)}:{name}"
        for file, name in frames
    ]
    own = [
        each
        for each, (file, _) in zip(short, frames, strict=True)
        if "/attnscope/" in file and "/site-packages/" not in file
    ]
    return short[-1] if not own or own[-1] == short[-1] else f"{own[-1]} > {short[-1]}"


def _raised(errors: str) -> str:
    lines = [
        line
        for line in errors.splitlines()
        if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit|Warning)?\b(:|$)", line)
    ]
    return lines[-1].split(":")[0] if lines else "?"


def _codes(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    if outcome.code not in DOCUMENTED:
        yield Finding(
            "exit code",
            f"{outcome.code}: {_alike(_text(outcome.stderr)[-100:])}",
            _text(outcome.stderr)[-1500:],
        )
    if outcome.code == 130 and invocation.interrupt is None:
        yield Finding("exit code", "130 without an interrupt", _text(outcome.stderr))
    if outcome.code == 141 and Stream.BROKEN not in (invocation.stdout, invocation.stderr):
        yield Finding("exit code", "141 with nothing broken", _text(outcome.stderr))


def _lines(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    """Standard error: notices, and one line of error where there is one."""
    if invocation.stderr is not Stream.KEPT:
        return
    lines = [line for line in COLOUR.sub("", _text(outcome.stderr)).split("\n") if line.strip()]
    ours = [line for line in lines if line.startswith(PREFIX)]
    if len(ours) > 1 and all(map(OF_A_TEXT.match, ours)) and "--texts" in invocation.argv:
        ours = ours[:1]  # the others go on
    if invocation.interrupt is not None and len(ours) == 2 and ours[1] == f"{PREFIX}interrupted":
        ours = ours[1:]  # the moment came between the line of a refusal and the end
    others = [line for line in lines if not line.startswith((PREFIX, NOTE, WROTE, *NOT_OURS))]
    if others and not invocation.verbose and not (outcome.code == 2 and not invocation.argv):
        yield Finding(
            "stray line on stderr", f"exit {outcome.code}: {_alike(others[0])}", "\n".join(lines)[-2000:]
        )
    elif outcome.code in REFUSED and len(ours) != 1 and invocation.argv:
        yield Finding(
            "not one line of error", f"exit {outcome.code}: {len(ours)} lines", "\n".join(lines)[-2000:]
        )
    if outcome.code == 0 and ours:
        yield Finding("error with exit 0", _alike(ours[0]), ours[0])
    if invocation.quiet and any(line.startswith((NOTE, WROTE)) for line in lines):
        yield Finding("notice under --quiet", _alike(lines[0]), lines[0])


def _raw(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    coloured = {"FORCE_COLOR", "TTY_COMPATIBLE"} & set(invocation.environment)  # asks for it in so many words
    for name, content in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        text = COLOUR.sub("", _text(content)) if coloured else _text(content)
        if found := RAW.search(text):
            near = text[max(0, found.start() - 60) : found.end() + 20]
            yield Finding(
                "raw control character",
                f"U+{ord(found[0]):04X} on {name}: {invocation.argv[:1]}",
                ascii(near),
            )


def _document(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    """Under --json one document in strict JSON, of a prediction of each of many texts one to a line."""
    if (
        not invocation.json
        or outcome.code not in (0, 5)
        or invocation.asks_help
        or invocation.stdout is not Stream.KEPT
        or (outcome.code == 5 and not outcome.stdout)  # refused, since there is no number to be told
    ):
        return
    many = invocation.argv[0] == "predict" and "--texts" in invocation.argv
    try:
        for document in outcome.stdout.splitlines() if many else [outcome.stdout]:
            json.loads(document.decode("utf-8"), parse_constant=_no_constant)
    except ValueError as error:
        yield Finding(
            "not one JSON document",
            f"{invocation.argv[0]}: {_alike(str(error))}",
            _text(outcome.stdout)[:800],
        )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _numbers(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    """NaN or Infinity as a result, where nobody typed it."""
    typed = " ".join(invocation.argv) + (
        _text(invocation.stdin) if isinstance(invocation.stdin, bytes) else ""
    )
    if (
        outcome.code != 0
        or invocation.asks_help
        or invocation.json
        or re.search("nan|inf", typed, re.IGNORECASE)
        or invocation.argv[0] in ("show", "measures")
    ):
        return
    if found := NO_NUMBER.search(_text(outcome.stdout)):
        near = _text(outcome.stdout)[max(0, found.start() - 200) : found.end() + 80]
        yield Finding("no number printed", f"{found[0]} by {invocation.argv[0]}", near)


def _files(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    """Files that were asked for, whole or not at all, and nothing else."""
    if invocation.homeless:
        return
    if temporary := [name for name in outcome.temporary if not name.startswith(NOT_OUR_FOLDERS)]:
        yield Finding("temporary files left", _alike(temporary[0]), str(temporary))
    asked = {_normal(str(path)) for path in invocation.targets}
    # of a corpus: also where nothing but what was set aside is in it, and it is told that it stands there
    told = f"stands in run/{SET_ASIDE}" in _text(outcome.stderr)
    run = "run/" if "--run" in invocation.argv and (outcome.code in (0, 5) or told) else "\0"
    files = [name for name in outcome.left if not name.endswith("/")]
    for name in files:
        if _normal(name) not in asked and not (
            name.startswith(run) or (name.startswith("outputs/") and outcome.code in (0, 5, 6, 2, 141, 130))
        ):
            yield Finding("stray file left", f"exit {outcome.code}: {_alike(name)}", name)
        elif why := _broken(name, outcome.files.get(name)):
            yield Finding("half a file left", f"exit {outcome.code}: {why}", name)
    for name in (name for name in outcome.left if name.endswith("/")):
        if not any(file.startswith(name) for file in outcome.left if file != name) and outcome.code not in (
            0,
            5,
        ):
            yield Finding("empty folder left", f"exit {outcome.code}: {_alike(name)}", name)
    streams = (invocation.stdout, invocation.stderr)
    limits = (invocation.interrupt, invocation.file_limit)
    spoiled = streams != (Stream.KEPT, Stream.KEPT) or limits != (None, None)
    spoiled = spoiled or bool(OF_A_TEXT.search(_text(outcome.stderr)))  # those that could be read were told
    if outcome.code in (2, 3, 4) and files and len(asked) < 2 and not spoiled and not told:
        yield Finding(
            "refused after writing",
            f"{invocation.argv[0]}: {_alike(_text(outcome.stderr)[-80:])}",
            str(files),
        )
    if outcome.code in (2, 3, 4) and outcome.stdout and not spoiled:
        yield Finding(
            "refused after printing",
            f"{invocation.argv[0]}: {_alike(_text(outcome.stderr)[-80:])}",
            _text(outcome.stdout)[:500],
        )


def _halves(outcome: Outcome) -> Iterator[Finding]:
    """Files that are not whole after an end that leaves no time; parts without their name may lie there."""
    for name, content in outcome.files.items():
        if not UNFINISHED.search(name) and (why := _broken(name, content)):
            yield Finding("half a file left", f"killed: {why}", name)


def _normal(name: str) -> str:
    import os

    return os.path.normpath(name)


def _broken(name: str, content: bytes | None) -> str:
    """Why a file is not whole, by its suffix; empty where it is."""
    if content is None:
        return ""
    try:
        return _opened(name.rpartition(".")[2].lower(), content)
    except Exception as error:
        return f".{name.rpartition('.')[2]}: {type(error).__name__}"


def _opened(suffix: str, content: bytes) -> str:
    if suffix == "png":
        from PIL import Image

        Image.open(io.BytesIO(content)).load()
    elif suffix == "svg":
        ElementTree.fromstring(content)
    elif suffix == "pdf" and not (content.startswith(b"%PDF") and content.rstrip().endswith(b"%%EOF")):
        return ".pdf without an end"
    elif suffix == "json":
        json.loads(content, parse_constant=_no_constant)
    elif suffix == "npz":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return ".npz: a member is damaged" if archive.testzip() else ""
    elif suffix == "csv":
        cells = [cell for row in csv.reader(io.StringIO(content.decode("utf-8"))) for cell in row]
        if any(cell[:1] in FORMULA and not _is_number(cell) for cell in cells if len(cell) > 1):
            return ".csv: a cell that a spreadsheet would run"
        if not content.endswith(b"\n"):
            return ".csv without an end"
    elif suffix == "py":
        compile(content, "made.py", "exec")
    if suffix in WRITTEN and (found := RAW.search(content.decode("utf-8"))):
        return f".{suffix}: U+{ord(found[0]):04X} as it is"
    return ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _canaries(invocation: Invocation, outcome: Outcome) -> Iterator[Finding]:
    allowed = {"--allow-pickle": "pickle", "--trust-remote-code": "code"}
    permitted = {canary for option, canary in allowed.items() if option in invocation.argv}
    for canary in set(outcome.canaries) - permitted:
        yield Finding("planted code ran", canary, str(outcome.canaries))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _alike(message: str) -> str:
    """A message without what differs from one occurrence to the next."""
    message = re.sub(r"""(['"‘“`]).*?(['"’”`])""", "'…'", message.replace("\n", " ").strip())
    return re.sub(r"\d+", "0", re.sub(r"/\S+", "/…", message))[:110]


CHECKS = (_codes, _lines, _raw, _document, _numbers, _files, _canaries)
