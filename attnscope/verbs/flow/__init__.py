"""Follow attention back to the input, beside replaced words."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Does the answer need it?",
    order=120,
    examples=(
        'attnscope flow "I was watching the [MASK]." --from "[MASK]" -m demo',
        'attnscope flow "I was watching the" --from the -m demo-causal',
        'attnscope flow "The [MASK] opened." --from "[MASK]" -m demo -o flow.png',
    ),
    kinds={
        "flow": Kind(
            ".result:Flow", ".sheet:sheet", script=".sheet:figures", again=".again", many=".answer:figures"
        ),
    },
)
