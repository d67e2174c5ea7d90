"""`attnscope verify`: every layer and head of a model at once, one exit code."""

from attnscope.cli import options
from attnscope.cli.output import NUMBERS, Output, check_targets, finish, save
from attnscope.cli.session import Request, encode, find_checkpoint, loading, read_texts


def verify(
    text: options.Text,
    model: options.ModelName = None,
    pair: options.Pair = None,
    out: options.Numbers = None,
    json: options.Json = False,
    truncate: options.Truncate = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    revision: options.Revision = None,
    trust_remote_code: options.RemoteCode = False,
    allow_pickle: options.AllowPickle = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Certify every layer and head of a model, and its results.

    The final hidden states and logits are held against a run that was not touched. Exit code 5 when
    a certificate fails or a result changes while the model is watched.
    """
    output, targets = Output(quiet=quiet, verbose=verbose), list(out or [])
    check_targets(targets, NUMBERS)
    texts = read_texts(text, pair)
    request = Request(model, revision, device, dtype, trust_remote_code, allow_pickle)
    checkpoint = find_checkpoint(request, output)
    with loading(checkpoint, output):
        from attnscope.analysis import verification
        from attnscope.capture import provenance_of
        from attnscope.model.load import load_with_head

        loaded = load_with_head(checkpoint, remote_code=trust_remote_code, device=device, dtype=dtype)
    encoded = encode(loaded, texts, output, truncate=truncate)
    with output.working("certifying every head"):
        provenance = provenance_of(loaded.module, encoded.tokens, loaded.origin())
        result = verification(loaded.module, encoded.inputs, encoded.tokens, provenance)
    save(output, targets, result)
    if json:
        output.document(result)
    else:
        from attnscope.render import terminal

        output.show(terminal.header(result), terminal.verification(result, output.width))
    finish(result.verdict)
