"""Every command, in the order of the help, with invocations that open its own help: one to paste at once."""

EXAMPLES = {
    "heads": (
        'attnscope heads "I was watching the [MASK] when it opened." -m demo',
        'attnscope heads "The door opened." -m demo --layer 3 --head 11 -o head.png',
        "attnscope heads - -m gpt2 -l 5 --head 1 --zoom 900-963:0-99 < book.txt",
    ),
    "explore": (
        'attnscope explore "I was watching the door when [MASK] opened." -m demo',
        "attnscope explore -m bert-base-uncased --layer 3 --head 11",
    ),
    "tsne": (
        'attnscope tsne "I was watching the door when it opened." -m demo --query it',
        "attnscope tsne -m bert-base-uncased --layer 3 --head 11 --center-keys",
    ),
    "predict": (
        'attnscope predict "I was watching the [MASK] when it opened." -m demo',
        'attnscope predict "I was watching the" -m demo-causal',
    ),
    "find": (
        'attnscope find "The [MASK] opened." --from "[MASK]" --to opened -m demo',
        'attnscope find "river king river king" --pattern induction -m demo-causal',
    ),
    "flow": (
        'attnscope flow "I was watching the [MASK]." --from "[MASK]" -m demo',
        'attnscope flow "I put my money in the" --from the -m demo-causal -o flow.png',
    ),
    "ablate": (
        'attnscope ablate "I was watching the [MASK] when it opened." -m demo',
        'attnscope ablate "The [MASK] opened." -m demo --edge "[MASK]->opened"',
    ),
    "compare": (
        'attnscope compare "We sat on the bank." "Go to the bank." --word bank -m demo',
        'attnscope compare "The door opened." --word door --layer 0 --layer-b 3 -m demo',
    ),
    "check": ("attnscope check run.npz", "attnscope check run.npz --device cpu --json"),
    "dependencies": (
        "attnscope dependencies dev.conllu -m demo",
        "attnscope dependencies dev.conllu -m demo --relation nsubj -o nsubj.png",
    ),
    "corpus": (
        "attnscope corpus texts.txt -m demo -o corpus.png",
        "attnscope corpus dev.conllu -m demo --from-pos VERB --to-pos NOUN",
    ),
    "compose": (
        "attnscope compose -m demo-causal",
        "attnscope compose -m demo-causal --layer 1 --head 8 -o partners.png",
    ),
    "sdpa": (
        "attnscope sdpa --example fruit",
        'attnscope sdpa --q "1,0,1" --k "1,0,1; 0,1,0; 1,1,0" --v "1,2; 3,4; 5,6"',
    ),
    "report": (
        'attnscope report "I was watching the [MASK] when it opened." -m demo',
        'attnscope report "The door opened." -m demo --layer 3 --head 11 -o report.pdf',
    ),
    "verify": (
        'attnscope verify "The door opened." -m demo',
        'attnscope verify "The door opened." -m bert-base-uncased --attn sdpa',
    ),
    "model": ("attnscope model demo", "attnscope model bert-base-uncased --length 512"),
    "show": ("attnscope show head.npz", "attnscope show head.npz -o head.pdf"),
    "measures": ("attnscope measures", "attnscope measures --json"),
    "cache": ("attnscope cache", "attnscope cache clear"),
}
