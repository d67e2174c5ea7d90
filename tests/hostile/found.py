"""What campaigns found once, in a few words each: every campaign asks these first."""

from .invocation import Invocation, Stream

FOUND = (
    Invocation(("heads", "the door", "-m", "demo", "-o", "a" * 300 + ".png")),  # no name of a file is so long
    Invocation(("predict", "--ids", "1", "-m", "demo")),
    Invocation(("compare", "--ids", "1", "--ids-b", "1", "--word", "0", "-m", "demo")),
    Invocation(("verify", "the door", "-m", "demo"), environment={"TORCH_LOGS": "nope"}, cold=True),
    Invocation(("heads", "the door", "-m", "demo"), environment={"PYTHONIOENCODING": "utf-7"}),
    Invocation(("heads", "--texts", "-", "-m", "demo"), stdin=b"the door\n\xff\xfe\n\nthe dog\n"),
    Invocation(("heads", "the door", "-m", "demo", "-o", "sub/made.nosuch")),
    Invocation(("heads", "the door", "-m", "demo", "--layer", "0", "-o", "made.py")),
    Invocation(("--show-completion",), stdout=Stream.FULL),
    Invocation(("--show-completion",), environment={"SHELL": None}),
    Invocation(("show", "missing/stored.json")),
    Invocation(("tsne", "--image", "/dev/zero", "-m", "demo-caption")),
)
