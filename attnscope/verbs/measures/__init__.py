"""The measures of heads, and what each is."""

from attnscope.register import Verb

VERB = Verb(
    under="Arithmetic",
    order=180,
    examples=(
        'attnscope heads "The door opened." -m demo --measure previous',
        "attnscope measures",
        "attnscope measures previous",
    ),
    command=".command:measures",
)
