"""Worker process: reads a recipe and splits from standard input, and writes answers to its output.

    python -m attnscope.verbs.corpus.engine.worker

Its own standard output is put out of reach first, so that nothing that a library prints can get between. It
ends when its input does, and in the middle of a split where whoever started it was killed.
"""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO

from attnscope.errors import AttnscopeError, lacking
from attnscope.process.machine import hasten
from attnscope.verbs.corpus.engine import Broken, Finished, Measurer, Refused

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

_LOOK = 0.5  # seconds


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answers every split with its `Finished`, or with the error that prevented it."""
    measurer: Measurer | None = None
    while True:
        answer: Finished | Refused | Broken | None = None
        try:
            asked = _read(source)
            if asked is None:
                return
            if measurer is None:
                measurer = asked.open()
            else:
                answer = measurer.measure(asked)
        except AttnscopeError as error:
            answer = Refused(error)
        except Exception as error:
            refusal = lacking(error)
            answer = Broken(traceback.format_exc()) if refusal is None else Refused(refusal)
        pickle.dump(answer, sink)
        sink.flush()


def _read(source: BinaryIO) -> Any:
    try:
        return pickle.load(source)
    except (EOFError, pickle.UnpicklingError):
        return None


def _follow(parent: int) -> None:
    """Ends this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(0)


def main() -> None:
    hasten()  # the process is nobody else's
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
    for name in ("SIGINT", "SIGHUP"):  # whoever started it answers those, and then ends its input
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, sink)
    except BrokenPipeError:
        os._exit(0)  # nobody is left to hear of it


if __name__ == "__main__":
    main()
