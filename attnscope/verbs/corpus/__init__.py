"""What is asked of a corpus: which files, what is measured in them, and where the run is kept."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Many texts, two things",
    order=150,
    examples=(
        "attnscope corpus texts.txt -m demo",
        "attnscope corpus texts.txt -m demo-causal --measure entropy -o corpus.png",
        "attnscope corpus dev.conllu -m demo --from-pos VERB --to-pos NOUN",
    ),
    kinds={
        "corpus": Kind(".result:Corpus", ".sheet:sheet"),
    },
    library={"corpus": ".library:corpus"},
    command=".command:corpus",
)
