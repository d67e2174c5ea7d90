"""Find the heads that read what others write, from weights."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Which heads do it? Each beside a control",
    order=90,
    examples=(
        "attnscope compose -m demo-causal",
        "attnscope compose -m demo-causal --through key",
        "attnscope compose -m demo-causal --layer 1 --head 8 -o partners.png",
    ),
    kinds={
        "composition": Kind(".result:Composition", ".sheet:sheet", script=".sheet:figures", again=".again"),
    },
)
