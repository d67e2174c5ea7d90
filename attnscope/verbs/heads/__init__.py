"""Show what heads look at: one in full, several at a glance."""

from attnscope.register import Verb

VERB = Verb(
    under="Look at attention",
    order=10,
    examples=(
        'attnscope heads "I was watching the [MASK] when it opened." -m demo',
        'attnscope heads "The door opened." -m demo --layer 3 --head 11 -o head.png',
        'attnscope heads "river king river king" -m demo-causal --query 3 --key 2',
    ),
    library={"Reading.measure": ".methods:measure"},
)
