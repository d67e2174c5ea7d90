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
        "comparison": Kind(".result:Comparison", ".sheet:sheet", page=".page:of_comparison"),
        "corpora": Kind(".corpora_result:CorpusDifference", ".corpora_sheet:sheet"),
        "difference": Kind(".result:Difference", ".difference_sheet:sheet", page=".page:of_difference"),
        "drift": Kind(".texts_result:Drift", ".drift_sheet:sheet"),
        "senses": Kind(".texts_result:Senses", ".senses_sheet:sheet"),
    },
    also={
        "Between": ".result:Between",
        "Divergence": ".result:Divergence",
        "Side": ".result:Side",
        "Similarity": ".result:Similarity",
    },
    library={"compare": ".library:compare", "difference": ".library:difference"},
)
