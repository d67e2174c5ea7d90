"""Tell why a head looks there, or why the model answers so."""

from attnscope.register import Kind, Verb

_APART = "its sum needs every operation of the run cut into parts, which no plain program does"
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
            ".contributions_result:Contributions",
            ".contributions_sheet:sheet",
            many=".answer:figures_of_answer",
            no_script=f"{_APART}; ablate --answer has one of what is lost without heads",
        ),
        "why": Kind(
            ".result:Why",
            ".sheet:sheet",
            many=".answer:figures",
            no_script=_APART,
        ),
    },
)
