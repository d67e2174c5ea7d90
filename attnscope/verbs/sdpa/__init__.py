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
        "scale": Kind("attnscope.results.worked:ScaleStudy", "attnscope.render.sheets.scale"),
        "worked": Kind("attnscope.results.worked:Worked", "attnscope.render.sheets.worked"),
    },
    library={"sdpa": "attnscope.worked.attention:sdpa"},
)
