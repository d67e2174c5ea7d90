"""Tell why a head looks there, or why the model answers so."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Which heads do it? Each beside a control",
    order=70,
    examples=(
        'attnscope why "box dog king box dog king" -m demo-causal -l 1 --from 4 --to 2',
        'attnscope why "I saw the door when [MASK] opened." -m demo --from 6 --to door',
        'attnscope why "The [MASK] opened." -m demo --answer window --against door',
    ),
    kinds={
        "contributions": Kind(
            "attnscope.results.claims.contributions:Contributions", "attnscope.render.sheets.contributions"
        ),
        "why": Kind("attnscope.results.claims.why:Why", "attnscope.render.sheets.why"),
    },
    needs=("ablate",),
)
