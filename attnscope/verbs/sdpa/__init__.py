"""Work attention out on numbers you give, step by step."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Arithmetic",
    order=170,
    examples=(
        "attnscope sdpa --example fruit",
        'attnscope sdpa --q "1,0,1" --k "1,0,1; 0,1,0; 1,1,0" --v "1,2; 3,4; 5,6"',
        "attnscope sdpa --example tensors --wrong no-scale",
    ),
    kinds={
        "scale": Kind(".result:ScaleStudy", ".scale_sheet:sheet"),
        "worked": Kind(".result:Worked", ".sheet:sheet"),
    },
    library={"sdpa": ".attention:sdpa"},
)
