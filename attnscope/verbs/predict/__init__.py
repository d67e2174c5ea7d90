"""Show what the model itself answers."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Does the answer need it?",
    order=100,
    examples=(
        'attnscope predict "I was watching the [MASK] when it opened." -m demo',
        'attnscope predict "river king door river king" -m demo-causal --layers',
        'attnscope predict "The door opened." -m demo-translate',
    ),
    kinds={
        "layers": Kind(".result:LayeredPrediction", ".sheet:sheet", many=".answer:figures"),
    },
    also={"LayerAnswer": ".result:LayerAnswer", "LayeredPlace": ".result:LayeredPlace"},
)
