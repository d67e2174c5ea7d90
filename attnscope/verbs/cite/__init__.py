"""Tell which passage an answer came from."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Does the answer need it?",
    order=130,
    examples=(
        'attnscope cite "Kano is red. Olfa is wet. Olfa is" -m demo-reader --answer wet',
        'attnscope cite "Red. Wet. What is Olfa\'s? Answer:" -m demo-reader --generate 1',
        'attnscope cite "It fell. I saw. He sat." -m demo-translate --answer "il est"',
    ),
    kinds={
        "citation": Kind(".result:Citation", ".sheet:sheet"),
        "referee": Kind(".result:Referee", ".sheet:sheet"),
    },
)
