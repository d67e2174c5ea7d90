"""Map a head's queries and keys, and say how far to trust it."""

from attnscope.register import Verb

VERB = Verb(
    under="Look at attention",
    order=40,
    examples=(
        'attnscope tsne "I was watching the door when it opened." -m demo --query it',
        'attnscope tsne "I was watching the door." -m demo --layer 2 --head 0',
        'attnscope tsne "river king river king" -m demo-causal -o map.svg',
    ),
)
