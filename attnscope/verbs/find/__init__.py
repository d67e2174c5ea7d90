"""Find heads that look from one token at another."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Which heads do it? Each beside a control",
    order=50,
    examples=(
        'attnscope find "I saw the box when it opened." --from it --to box -m demo',
        'attnscope find "box key dog he box key dog" --pattern induction -m demo-causal',
        "attnscope find --pattern retrieval --lengths 128,512 -m demo-reader",
    ),
    kinds={
        "finding": Kind("attnscope.results.claims.finding:Finding", "attnscope.render.sheets.finding:sheet"),
        "links": Kind("attnscope.results.claims.links:Links", "attnscope.render.sheets.links:sheet"),
        "retrieval": Kind(
            "attnscope.results.claims.retrieval:Retrieval", "attnscope.render.sheets.retrieval"
        ),
    },
)
