"""What was typed, as a command that asks something else says it again."""

from contextlib import AbstractContextManager
from pathlib import Path

from attnscope.printable import word
from attnscope.render.kit.words.command import Typed, as_typed, text_words
from attnscope.session.request import Chat, Inputs, ModelRequest, Tokens
from attnscope.session.wanted import Wanted


def typed(inputs: Inputs, request: ModelRequest, wanted: Wanted | None) -> Typed:
    """All that is read, and how it is run beyond what a result tells itself (model, precision, kernel)."""
    read = _read(inputs)
    return Typed(
        read=read or None,  # else it is a sentence of ours, which the result has
        writing=_told(("--generate", inputs.writing.generate)),
        run=running(request, wanted),
    )


def run_again(
    request: ModelRequest, wanted: Wanted | None, read: tuple[str, ...] | None = None
) -> AbstractContextManager[None]:
    """Commands within run the model in this way, and read what is given here where no result tells it."""
    return as_typed(Typed(read, run=running(request, wanted)))


def running(request: ModelRequest, wanted: Wanted | None = None) -> tuple[str, ...]:
    """How a model is run, as far as no result tells; of `wanted` which of its attention that is of."""
    chosen = wanted or Wanted()
    return (
        *_told(
            ("--revision", request.revision),
            ("--device", None if request.device == "auto" else request.device),
            ("--tokenizer", request.tokenizer),
            ("--device-map", request.device_map),
            ("--max-memory", request.max_memory),
            ("--kind", chosen.kind),
            ("--tower", chosen.tower),
            ("--block", chosen.block or None),
            ("--route", chosen.route),
        ),
        *_flags(("--trust-remote-code", request.trust_remote_code), ("--allow-pickle", request.allow_pickle)),
    )


def _read(inputs: Inputs) -> tuple[str, ...]:
    return (
        *(() if inputs.text is None else text_words(inputs.text)),
        *_told(
            ("--pair", inputs.pair),
            ("--target", inputs.target),
            ("--target-ids", _numbers(inputs.target_ids)),
            ("--ids", _numbers(inputs.ids)),
            ("--system", inputs.system),
        ),
        *_chat(inputs.chat),
        *_file("--vocab", inputs.vocab, "your-vocabulary.txt"),
        *_file("--image", inputs.image, "your-picture.png"),
        *_file("--audio", inputs.audio, "your-sound.wav"),
        *_flags(("--split", inputs.split), ("--truncate", inputs.truncate)),
    )


def _numbers(tokens: Tokens | None) -> str | None:
    return tokens if tokens is None or isinstance(tokens, str) else ",".join(map(str, tokens))


def _chat(chat: Chat | None) -> tuple[str, ...]:
    return () if chat is None else _file("--chat", chat.file or "-", "your-chat.json")


def _file(option: str, file: str | Path | None, piped: str) -> tuple[str, ...]:
    if file is None:
        return ()
    if str(file) == "-":
        return (option, "-", "<", piped)
    return (option, word(str(file)) if Path(file).is_file() else piped)


def _told(*given: tuple[str, object]) -> tuple[str, ...]:
    return tuple(f"{option} {word(str(value))}" for option, value in given if value is not None)


def _flags(*given: tuple[str, bool]) -> tuple[str, ...]:
    return tuple(option for option, wanted in given if wanted)
