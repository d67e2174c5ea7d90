"""Certify every layer and head of a model, and its results."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Trust and files",
    order=190,
    examples=(
        'attnscope verify "The door opened." -m demo',
        'attnscope verify "The door opened." -m demo-translate',
        'attnscope verify "The door opened." -m demo-causal --attn sdpa',
    ),
    kinds={
        "verification": Kind(".result:Verification", ".sheet:sheet"),
    },
    also={"LayerCheck": ".result:LayerCheck", "OutputCheck": ".result:OutputCheck"},
)
