"""Whether this installation still gives the numbers of a stored run."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Trust and files",
    order=200,
    examples=(
        'attnscope heads "The door opened." -m demo -o run.npz',
        "attnscope check run.npz",
        "attnscope check run.npz --device cpu --json",
    ),
    kinds={
        "check": Kind("attnscope.results.verification:Check", "attnscope.render.sheets.check"),
    },
    command=".command:check",
)
