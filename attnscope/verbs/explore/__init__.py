"""The explorer: one text, and every head of it under the keys."""

from attnscope.register import Verb

VERB = Verb(
    under="Look at attention",
    order=20,
    examples=(
        'attnscope explore "I was watching the door when [MASK] opened." -m demo',
        'attnscope explore "river king river king" -m demo-causal',
        'attnscope explore "The door opened." -m demo-translate --kind cross',
    ),
    command=".command:explore",
    needs=("ablate", "compare", "find", "predict"),
)
