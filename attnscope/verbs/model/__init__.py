"""What there is to look at in a model."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Trust and files",
    order=220,
    examples=(
        "attnscope model demo",
        "attnscope model demo-translate --kind cross",
        "attnscope model demo-reader --length 128,1024",
    ),
    kinds={
        "outline": Kind(
            "attnscope.results.outline:Outline",
            "attnscope.render.sheets.outline:sheet",
            no_picture="an outline of a model has no picture: it is a table of layers",
        ),
    },
    library={"outline": ".answer:outline"},
    command=".command:model",
)
