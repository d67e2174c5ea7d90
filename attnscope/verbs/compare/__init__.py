"""Compare a word in two or many texts, two models, two runs."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Many texts, two things",
    order=140,
    examples=(
        'attnscope compare "We sat on the bank." "Go to the bank." --word bank -m demo',
        'attnscope compare "The door opened." --word door --layer 0 --layer-b 3 -m demo',
        "attnscope compare --texts texts.txt --model-b demo -m demo --fail-above .05",
    ),
    kinds={
        "comparison": Kind(
            "attnscope.results.claims.comparison:Comparison", "attnscope.render.sheets.comparison"
        ),
        "corpora": Kind(
            "attnscope.results.claims.corpora:CorpusDifference", "attnscope.render.sheets.corpora"
        ),
        "difference": Kind(
            "attnscope.results.claims.difference:Difference", "attnscope.render.sheets.difference"
        ),
        "drift": Kind("attnscope.results.claims.drift:Drift", "attnscope.render.sheets.drift"),
        "senses": Kind("attnscope.results.claims.senses:Senses", "attnscope.render.sheets.senses"),
    },
    library={
        "compare": ".library:compare",
        "difference": ".library:difference",
        "Model.compare": ".methods:compare",
    },
)
