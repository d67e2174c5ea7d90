"""Put one head on one page, for a talk or a paper."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Look at attention",
    order=30,
    examples=(
        'attnscope report "I was watching the [MASK] when it opened." -m demo',
        'attnscope report "The door opened." -m demo --layer 3 -o report.pdf',
        'attnscope report "river king river king" -m demo-causal --query 3',
    ),
    kinds={
        "report": Kind(".result:Report", ".sheet:sheet", page=".page:of_report", drawing=".drawing.page"),
    },
    needs=("predict", "tsne"),
)
