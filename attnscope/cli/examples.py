"""Every command under what one wants of it, in the order of the help, with three examples of it each.

An example runs as it stands on the bundled models; files that it reads are written by another one of the same
command, or are the user's own: `dev.conllu`, `texts.txt`.
"""

COMMANDS = {
    "Look at attention": {
        "heads": (
            'attnscope heads "I was watching the [MASK] when it opened." -m demo',
            'attnscope heads "The door opened." -m demo --layer 3 --head 11 -o head.png',
            'attnscope heads "river king river king" -m demo-causal --query 3 --key 2',
        ),
        "explore": (
            'attnscope explore "I was watching the door when [MASK] opened." -m demo',
            'attnscope explore "river king river king" -m demo-causal',
            'attnscope explore "The door opened." -m demo-translate --kind cross',
        ),
        "report": (
            'attnscope report "I was watching the [MASK] when it opened." -m demo',
            'attnscope report "The door opened." -m demo --layer 3 -o report.pdf',
            'attnscope report "river king river king" -m demo-causal --query 3',
        ),
        "tsne": (
            'attnscope tsne "I was watching the door when it opened." -m demo --query it',
            'attnscope tsne "I was watching the door." -m demo --layer 2 --head 0',
            'attnscope tsne "river king river king" -m demo-causal -o map.svg',
        ),
    },
    "Which heads do it? Each beside a control": {
        "find": (
            'attnscope find "I saw the box when it opened." --from it --to box -m demo',
            'attnscope find "box key dog he box key dog" --pattern induction -m demo-causal',
            "attnscope find --pattern retrieval --lengths 128,512 -m demo-reader",
        ),
        "explain": (
            'attnscope explain "I saw the door, [MASK] opened." -m demo --from 6 --to door',
            'attnscope explain "box dog king box dog king" -m demo-causal --from 4 --to 2',
            'attnscope explain "I saw a box, it opened." -m demo --from it --to 4 -o x.html',
        ),
        "why": (
            'attnscope why "box dog king box dog king" -m demo-causal -l 1 --from 4 --to 2',
            'attnscope why "I saw the door when [MASK] opened." -m demo --from 6 --to door',
            'attnscope why "The [MASK] opened." -m demo --answer window --against door',
        ),
        "dependencies": (
            "attnscope dependencies dev.conllu -m demo",
            "attnscope dependencies dev.conllu -m demo --relation nsubj -o nsubj.png",
            "attnscope dependencies dev.conllu -m demo-causal --limit 100",
        ),
        "compose": (
            "attnscope compose -m demo-causal",
            "attnscope compose -m demo-causal --through key",
            "attnscope compose -m demo-causal --layer 1 --head 8 -o partners.png",
        ),
    },
    "Does the answer need it?": {
        "predict": (
            'attnscope predict "I was watching the [MASK] when it opened." -m demo',
            'attnscope predict "river king door river king" -m demo-causal --layers',
            'attnscope predict "The door opened." -m demo-translate',
        ),
        "ablate": (
            'attnscope ablate "I was watching the [MASK] when it opened." -m demo',
            'attnscope ablate "box dog king box dog king" -m demo-causal --via L1.k',
            'attnscope ablate "The [MASK] opened." -m demo --link "[MASK]->opened"',
        ),
        "flow": (
            'attnscope flow "I was watching the [MASK]." --from "[MASK]" -m demo',
            'attnscope flow "I was watching the" --from the -m demo-causal',
            'attnscope flow "The [MASK] opened." --from "[MASK]" -m demo -o flow.png',
        ),
        "cite": (
            'attnscope cite "Kano is red. Olfa is wet. Olfa is" -m demo-reader --answer wet',
            'attnscope cite "Red. Wet. What is Olfa\'s? Answer:" -m demo-reader --generate 1',
            'attnscope cite "It fell. I saw. He sat." -m demo-translate --answer "il est"',
        ),
    },
    "Many texts, two things": {
        "compare": (
            'attnscope compare "We sat on the bank." "Go to the bank." --word bank -m demo',
            'attnscope compare "The door opened." --word door --layer 0 --layer-b 3 -m demo',
            "attnscope compare --texts texts.txt --model-b demo -m demo --fail-above .05",
        ),
        "corpus": (
            "attnscope corpus texts.txt -m demo",
            "attnscope corpus texts.txt -m demo-causal --measure entropy -o corpus.png",
            "attnscope corpus dev.conllu -m demo --from-pos VERB --to-pos NOUN",
        ),
    },
    "Jobs that people do with attention": {
        "align": (
            'attnscope align "The red door opened." -m demo-translate',
            'attnscope align "He slept." --target "il a dormi." -m demo-translate',
            "attnscope align --audio speech.wav -m demo-speech -o speech.srt",
        )
    },
    "Arithmetic": {
        "sdpa": (
            "attnscope sdpa --example fruit",
            'attnscope sdpa --q "1,0,1" --k "1,0,1; 0,1,0; 1,1,0" --v "1,2; 3,4; 5,6"',
            "attnscope sdpa --example tensors --wrong no-scale",
        ),
        "measures": (
            'attnscope heads "The door opened." -m demo --measure previous',
            "attnscope measures",
            "attnscope measures previous",
        ),
    },
    "Trust and files": {
        "verify": (
            'attnscope verify "The door opened." -m demo',
            'attnscope verify "The door opened." -m demo-translate',
            'attnscope verify "The door opened." -m demo-causal --attn sdpa',
        ),
        "check": (
            'attnscope heads "The door opened." -m demo -o run.npz',
            "attnscope check run.npz",
            "attnscope check run.npz --device cpu --json",
        ),
        "show": (
            'attnscope heads "The door opened." -m demo -l 3 --head 11 -o head.npz',
            "attnscope show head.npz",
            "attnscope show head.npz --query door -o head.pdf",
        ),
        "model": (
            "attnscope model demo",
            "attnscope model demo-translate --kind cross",
            "attnscope model demo-reader --length 128,1024",
        ),
    },
}
EXAMPLES = {name: lines for commands in COMMANDS.values() for name, lines in commands.items()}
