"""Take heads away: what the answer becomes, beside others."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Does the answer need it?",
    order=110,
    examples=(
        'attnscope ablate "I was watching the [MASK] when it opened." -m demo',
        'attnscope ablate "box dog king box dog king" -m demo-causal --via L1.k',
        'attnscope ablate "The [MASK] opened." -m demo --link "[MASK]->opened"',
    ),
    kinds={
        "ablation": Kind(
            ".result:Ablation",
            ".sheet:sheet",
            script=".sheet:figures",
            again=".again",
            many=".answer:figures",
        ),
    },
)
