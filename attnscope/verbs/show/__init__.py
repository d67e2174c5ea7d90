"""A stored result again, without its model."""

from attnscope.register import Verb

VERB = Verb(
    under="Trust and files",
    order=210,
    examples=(
        'attnscope heads "The door opened." -m demo -l 3 --head 11 -o head.npz',
        "attnscope show head.npz",
        "attnscope show head.npz --query door -o head.pdf",
    ),
    command=".command:show",
)
