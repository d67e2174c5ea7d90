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
        "finding": Kind(
            ".result:Finding", ".sheet:sheet", script=".sheet:figures", again=".again", many=".answer:figures"
        ),
        "links": Kind(".result:Links", ".links_sheet:sheet"),
        "retrieval": Kind(".result:Retrieval", ".retrieval_sheet:sheet"),
    },
    also={"Controls": ".result:Controls", "Sought": ".result:Sought"},
)
