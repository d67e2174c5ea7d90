"""Link words with their translation, or time what is said."""

from attnscope.register import Kind, Verb

VERB = Verb(
    under="Jobs that people do with attention",
    order=160,
    examples=(
        'attnscope align "The red door opened." -m demo-translate',
        'attnscope align "He slept." --target "il a dormi." -m demo-translate',
        "attnscope align --audio speech.wav -m demo-speech -o speech.srt",
    ),
    kinds={
        "alignment": Kind(
            ".result:Alignment",
            ".sheet:sheet",
            files={".pharaoh": ".sheet:as_pharaoh", ".tsv": ".sheet:links_as_tsv"},
        ),
        "timing": Kind(
            ".result:Timing",
            ".sheet:sheet",
            files={".srt": ".sheet:as_srt", ".vtt": ".sheet:as_vtt", ".tsv": ".sheet:times_as_tsv"},
        ),
    },
)
