"""One head or several for the screen: recomputed where that can be, else as the model returns them."""

from typing import TYPE_CHECKING

from attnscope.cli.groups import ROUTES
from attnscope.cli.output import Output
from attnscope.cli.session import Session
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.capture.returned import Returned
    from attnscope.results import HeadWeights, Overview


def one_head(session: Session, output: Output, *, show: str) -> "HeadWeights":
    """The one chosen head; `InputError` where what is to be shown of it is not returned by the model."""
    found = _returned_as_asked(session)
    if found is None:
        from attnscope.capture.run import NothingSeenError

        try:
            return session.head()
        except NothingSeenError as error:
            found = _returned_instead(session, output, error)
    if show != "weights":
        raise InputError(f"{session.model.name} returns weights alone here: leave --show {show} out")
    from attnscope.analysis.returned import returned_head

    return returned_head(found, *session.only())


def several_heads(session: Session, output: Output) -> "Overview":
    """The chosen heads in the chosen layers."""
    from attnscope.analysis import overview
    from attnscope.analysis.returned import returned_overview

    found = _returned_as_asked(session)
    if found is None:
        from attnscope.capture.run import NothingSeenError

        try:
            return overview(session.capture(), session.heads, session.block)
        except NothingSeenError as error:
            found = _returned_instead(session, output, error)
    return returned_overview(found, session.heads)


def _returned_as_asked(session: Session) -> "Returned | None":
    """What the model returns, where `--route returned` asks for that."""
    from attnscope.capture.returned import ASKED

    return _returned(session, ASKED) if session.route == ROUTES["returned"] else None


def _returned_instead(session: Session, output: Output, error: InputError) -> "Returned":
    """What the model returns, where it made no dense attention; a route asked for is not replaced."""
    if session.route is not None:
        raise error
    from attnscope.capture.returned import SPARSE

    found = _returned(session, SPARSE)
    output.notice(f"{error}: showing what it returns")
    return found


def _returned(session: Session, reason: str) -> "Returned":
    from attnscope.capture import provenance_of
    from attnscope.capture.returned import returned

    if session.block:
        raise InputError(f"no block {session.block}: what a model returns is in one piece")
    model, encoded, target = session.model, session.encoded, session.target
    return returned(
        model.module,
        session.inputs,
        layers=session.layers,
        kind=session.kind,
        tower=session.tower.pattern,
        tokens=encoded.tokens,
        target=None if target is None else target.tokens,
        provenance=provenance_of(model.module, encoded.tokens, model.origin()),
        reason=reason,
    )
