"""Explain a link: who looks, by what, and if it matters."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Which heads do it? Each beside a control",
    order=60,
    examples=(
        'attnscope explain "I saw the door, [MASK] opened." -m demo --from 6 --to door',
        'attnscope explain "box dog king box dog king" -m demo-causal --from 4 --to 2',
        'attnscope explain "I saw a box, it opened." -m demo --from it --to 4 -o x.html',
    ),
    kinds={
        "explanation": Kind(
            ".result:Explanation",
            ".sheet:sheet",
            no_script="it is several questions: find, ablate, flow and compose, which it names, "
            "have one each",
        ),
    },
    needs=("ablate", "compose", "find", "why"),
)
