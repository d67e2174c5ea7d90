"""`attnscope check`: does this installation still give the numbers of a stored run?"""

from pathlib import Path
from typing import Annotated

from attnscope.cli.options import Delivery, check_files
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import CertificateError
from attnscope.session.option import WHICH, argument, option
from attnscope.session.request import PICKLE, REMOTE_CODE

RUN = argument(
    "RUN",
    help="What a question of one text or of a model wrote as .npz or .json.",
    brief="what a command wrote as .npz or .json",
)  # fmt: skip
MODEL = option(
    "--model", "-m", metavar="NAME", under=WHICH,
    help="Where the model is now. Default: as the file says.",
    brief="where the model is now; default: as the file says",
)  # fmt: skip
DEVICE = option(
    "--device", metavar="auto|cpu|cuda|cuda:N|mps", brief_metavar="WHERE", under=WHICH,
    help="Where to run. Default: where the run was made.",
    brief="cpu, cuda, mps; default: where the run was made",
)  # fmt: skip
IMAGE = option("--image", metavar="FILE", help="Where the picture is that was read.")
AUDIO = option("--audio", metavar="FILE", help="Where the sound is that was read.")


def check(
    file: Annotated[Path, RUN],
    model: Annotated[str | None, MODEL] = None,
    device: Annotated[str | None, DEVICE] = None,
    image: Annotated[Path | None, IMAGE] = None,
    audio: Annotated[Path | None, AUDIO] = None,
    trust_remote_code: Annotated[bool, REMOTE_CODE] = False,
    allow_pickle: Annotated[bool, PICKLE] = False,
    *,
    delivery: Delivery,
    output: Output,
) -> None:
    """Run a stored run again: are its numbers still the same?

    Model, text, tokens, kernel and precision are those of the file; a picture or a sound is found by its
    hash, beside the file or here. A number may be off by the tolerance of its certificate, and by a multiple
    of what it moves by where every weight of the model is moved by its precision: measured in two more runs.
    One line for each head, or part of another answer, that is not as stored (-v: for each), and exit code 5
    where there is one; weights, versions and machine that changed are told.
    """
    check_delivery(delivery, "Check")
    check_files(vocab=None, image=image, audio=audio)
    from attnscope.results import load

    stored = load(file)  # before anything heavy is imported: what cannot be read is told at once
    from attnscope.verbs.check.answer import Leave, check_stored

    leave = Leave(model, device, trust_remote_code, allow_pickle, image, audio)
    result = check_stored(stored, file, leave, output)
    try:
        output.deliver(result, delivery)
    except CertificateError as error:
        of = f"{len(result.every)} {'parts' if result.parts else 'heads'}"
        failure = f"of {of} {len(result.off)} not as stored in {result.file}"
        raise CertificateError(failure) from error
