"""Find the head that finds each grammatical relation."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Which heads do it? Each beside a control",
    order=80,
    examples=(
        "attnscope dependencies dev.conllu -m demo",
        "attnscope dependencies dev.conllu -m demo --relation nsubj -o nsubj.png",
        "attnscope dependencies dev.conllu -m demo-causal --limit 100",
    ),
    kinds={
        "dependencies": Kind(".result:Dependencies", ".sheet:sheet"),
    },
)
