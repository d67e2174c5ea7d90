"""What cannot be is refused: exit code 2, one line that says what is wrong, nothing printed or written."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from attnscope import demo
from attnscope.cli.app import app

Refused = Callable[..., None]
MASKED = "'I was watching the [MASK] when it opened.'"
DOOR = "'I was watching the door when [MASK] opened.'"
BANK = "'I sat on the bank and saw the water.' 'The bank has no money.'"
PIECES = "'The detective was unlocking doors'"
CITED = "'Velmir has a red cup. The key of Norris is blue. Question: what is the cup of Velmir? Answer:'"
PICTURE = shlex.quote(str(demo.example("demo-caption")))
HEAD = "--layer 3 --head 2"
BEFORE_WEIGHTS = {  # what is typed, and what the line says
    "find DOOR --from '[MASK]' --to 'the window'": "no token 'the window' in the input",
    "find DOOR --from 'door#2' --to I": "'door' stands once, #1 is the first",
    "find 'the cat saw the cat' --from saw --to 'the cat'": "the cat@1, the cat@4",
    "find DOOR --words --from '[MASK]' --to window": "no token 'window'",
    "heads DOOR --query window": "no token 'window' in the input: tokens are 0 [CLS], 1 I,",
    "heads DOOR --query it --key horse": "no token 'it' in the input",
    "heads DOOR --query 4-99": "no token 99 in the input: positions 0-10",
    "heads DOOR --query Door2": "the nearest is 5 door; tokens are 0 [CLS]",
    "heads DOOR --head L9H1": "no layer 9 in demo: layers 0-3, heads 0-11",
    "heads DOOR --layer -5": "no layer -5 in demo",
    "heads DOOR --head L3H11,L2H10": "here the same heads of every layer are meant",
    "heads DOOR --head L3H11 --show q --query 'the door'": "'4-5 the door' is 2 tokens",
    "flow DOOR --from 'the window'": "no token 'the window'",
    "tsne DOOR --head L3": "--head L3 are several: this is of one head",
    "tsne DOOR --query window": "no token 'window'",
    "tsne DOOR --query door --compare-query 'the window'": "no token 'the window'",
    "tsne DOOR --query 'the door' --compare-query 'door when'": "share 5 door",
    "tsne DOOR --query door --key dog": "no token 'dog' in the input",
    "why DOOR --from '[MASK]' --to door --head mean": "this is of one head",
    "why DOOR --from '[MASK]' --to 'the door'": "why takes one token each",
    "why DOOR --from '[MASK]' --to door --against door": "name another key",
    "why DOOR --from '[MASK]' --to door --layer 9": "layers 0-3",
    "why 'a door a door' --from a --to 2": "token 'a' stands 2 times",
    "ablate DOOR --link '[MASK]->window'": "no token 'window'",
    "ablate DOOR --head L3H99": "no head 99 in demo",
    "report DOOR --query 'the door'": "a report is of one query, whose scores and output",
    "report DOOR --query window": "no token 'window'",
    "explain DOOR --from '[MASK]' --to 4-5": "find and flow take several",
    "explain DOOR --from '[MASK]' --to window": "no token 'window'",
}
REFUSED = {
    f"ablate {MASKED} -m demo": {
        "--with 'I was'": "the texts have 11 and 4 tokens",
        "--patch-from 'I was watching the door when it opened.'": "5 [MASK] here, 5 door there",
        "--link '[MASK]'": "--link '[MASK]' is no link",
        "--answer floccinauci": "the vocabulary of demo has no token 'floccinauci'",
        "--top 3": "give --rank",
        "--rank --top 0": "--top is 0: it takes at least 1",
        "--link 'it->5' --rank": "leave --link out",
        "--link 'it->5' --with mean": "leave --with and --patch-from out",
        f"--patch-from {MASKED} --with mean": "leave --with out",
        "--controls 5": "it goes with --with mean",
        "--with mean --controls 0": "--controls 0: give 1 to",
        "--route returned": "nothing can be put in the place of an output",
        "--block 1": "a head is changed in all blocks of its layer",
        "--heads L3H1,x": "--head 'L3H1,x' is no list of heads: write them as L3H11, L3 or L3-5",
        "--via L0H3": "L0 H3 is in the first layer: no other layer comes before it",
        "--via L9H3": "no layer 9 in the model: layers 0-3, heads 0-11",
        "--via L2H99": "no head 99 in the model: layers 0-3, heads 0-11",
        "--via L2H3.x": "--via 'L2H3.x' is no list of heads: write L3H11, L3H11.q",
        "--via L2H3 --layer 3": "layer 3 does not come before L2 H3",
        "--via L2H3 --heads L1H1,L3H4": "nothing of layer 3 comes to L2 H3: leave it out",
        "--via L2H3 --rank": "leave --via out",
        "--via L2H3 -o again.py": "no script: in a program a change comes to everything",
        "--heads L1H1 --layer 1": "--head L1H1 names its layer: leave --layer out",
        "--part neuron": "no part 'neuron': head, mlp, attention, residual, position",
        "--part mlp --head 3": "--part mlp is no head's: leave --head out",
        "--part position --layer 3": "a position's vector is added before the first layer",
        "--part position --with mean": "leave --with and --patch-from out",
        "--part mlp --link 'it->5'": "--link is cut in heads",
        "--part mlp --rank": "leave it out with --part mlp",
        "--part mlp --at zebra": "no token 'zebra' in the input",
        "--part mlp -o again.py": "no script: only heads are taken away in a program, at all tokens",
        "--at it --link 'it->5'": "leave --at out",
        "--against door --rank": "leave --against out",
        "--against floccinauci": "has no token 'floccinauci'",
        "--answer box --against box": "--against 'box' is the answer itself",
        "--head mean": "heads and flow show the mean over heads",
        "--seed 18446744073709551616": "--seed is 18446744073709551616: it must be from 0 to",
    },
    "ablate": {
        "'no mask here' -m demo": "the text has no [MASK] to fill",
        "'I was there' -m demo-causal --link 'was->there'": "2 was cannot look at 3 there, which follows it",
        "'a [MASK].' -m demo --with mean": "too few words that could change places",
    },
    "": {
        "nonsense": "no such command 'nonsense' (see attnscope --help)",
        "--nonsense": "no such option: --nonsense",
        "hed": "no such command 'hed'. Did you mean 'heads'?",
        "'the cat sat'": "'the cat sat': a text stands behind one, as in attnscope heads",
        "heads the cat sat": "a text of several words goes in quotes",
        "'\u202e\x1b[31m'": r"no such command '\u202e\x1b[31m'",
        "show 'a\U000e0041\x9b.npz'": r"cannot read 'a\U000e0041\x9b.npz': no such file",
        "model '\u202e/x'": r"\u202e/x",
        "find 'the cat' --laier 3": "no such option: --laier: did you mean --layer?",
        "predict 'the cat' --head 3": "no such option: --head: heads, explore, report and ",
        "heads 'the cat' --pattern self": "no such option: --pattern: find has it",
        "heads 'the cat' --zzzz": "no such option: --zzzz (see",
    },
    f"heads {MASKED}": {
        "-m ''": "name of the model is empty",
        "--generate '\u2066x\u009b'": "invalid value for '--generate': it should be a valid",
        "-o 'a\u202egnp.bmp'": r"cannot write 'a\u202egnp.bmp'",
    },
    f"heads {MASKED} -m demo": {
        "--pair ' '": "one text of the pair is empty",
        f"--layer {'1' * 5000}": "is not a list",
        "--layer ٣": "is not a list",
        "--show q": "--show needs one head",
        f"{HEAD} --query it --show scores": "leave --show scores out",
        f"{HEAD} --device tpu": "unknown device 'tpu'",
        f"{HEAD} --device cpu:": "unknown device 'cpu:'",
        f"{HEAD} --device cuda:9": "no device cuda:9",
        f"{HEAD} --dtype int4": "unknown dtype 'int4'",
        f"-o {'a' * 300}.png": "too long",
        f"-o {'a' * 300}/b.png": "too long",
        "--grid --query it": "--grid shows whole heads in small: leave --query",
        "--grid --measure all": "--grid shows whole heads in small: leave --measure",
        "--grid --terms": "--grid shows whole heads in small: leave --terms",
        "--grid --show q": "--grid shows whole heads in small: leave --show",
        "--grid --rows 3": "--grid shows whole heads in small: leave --rows",
        "--measure induction": "no induction here: nothing stands before a token of which it could have",
        "--measure copying": "no copying here: what it writes is not read as a token: not a decoder",
        "--measure pattren": "no measure 'pattren': the nearest are ",
        "--route returned --measure moved": "no moved here: the model returns weights alone",
        "--kind cross": "demo has no cross attention: it has encoder",
        "--target we": "demo is no encoder-decoder: leave --target out",
        "--generate 4": "demo is no decoder and writes no text: leave --generate out",
        "--title x": "are about a picture: name one with -o",
        "--bare -o x.csv": "are about a picture: name one with -o",
        "--layer 0 -o again.py": "no script: there is one of one head of a text, and of find, compose",
        "--terms": "this needs one head: give one --layer and one --head",
        f"{HEAD} --terms --show q": "--terms is about the scores of single tokens: leave --show q out",
        f"{HEAD} --terms --words": "leave --by, --words and --special out",
        f"{HEAD} --terms --key it": "--key needs --query",
        f"{HEAD} --terms --route returned": "--route returned has weights alone",
        f"{HEAD} --show k --route returned": "returns weights alone here: leave --show k out",
        f"{HEAD} --block 2 --route returned": "no block 2: what a model returns is in one piece",
        f"{HEAD} --dims --terms": "--dims is about one pair of tokens: leave --terms out",
        f"{HEAD} --dims --words": "leave --by, --words and --special out",
        f"{HEAD} --dims --query door": "no token 'door'",
        f"{HEAD} --dims --route returned": "--route returned has weights alone",
        f"{HEAD} --words --show scores": "--show scores belongs to single",
        f"{HEAD} --special none": "--special is 'none': show, hide, renormalise",
        "--special hide": "--special renormalise, or give one --layer and one --head",
        "--head mean --layer 0-1": "is over the heads of one layer, or without --layer",
        "--head mean --terms": "--head mean has weights alone: leave --terms out",
        "--head mean --show q": "leave --show q out",
        "--head mean -o x.html": "--head mean has no page",
        "--head mean --tiled": "leave --head mean out",
    },
    "heads": {
        f"'' {HEAD} -m demo": "the text is empty",
        f"'a\udcff b' {HEAD} -m demo": "not valid UTF-8",
        f"'the dog saw the door' {HEAD} --query the -m demo": "the@1, the@4",
        f"'it has 4 doors and 4' {HEAD} --query 4 -m demo": "4@3",
        f"'{'door ' * 200}' {HEAD} -m demo": "202 tokens",
        "door -m demo-causal --generate 0": "--generate is 0: it takes at least 1 token",
        "'a door' -m demo-causal --generate 63": "demo-causal reads at most 64, so that --generate 62 is",
        "door -m demo-causal --generate 4 --target we": "--generate has the model write it: choose one",
        "door -m demo-translate --kind encoder --generate 4": "generates its decoder reads: --kind",
        "door -m demo-translate --kind crossed": "no kind of attention 'crossed': encoder, decoder, cross",
        "door -m demo-translate --kind encoder --target we": "leave one out",
        "door -m demo-translate --kind cross --layer 9": "no layer 9 in demo-translate (cross): layers 0-3",
        "door -m demo-translate --target ' '": "the target text is empty",
    },
    f"predict {MASKED} -m demo": {
        "--top 0": "greater than or equal to 1",
        "--target we": "no encoder-decoder",
        "-o p.gif": "cannot write 'p.gif'",
        "--controls 3": "--controls is about shuffled texts: it goes with --layers",
        "--layers --pair B.": "no verdict on a pair",
        "--layers --seed -1": "--seed is -1",
        "--layers --controls 20000": "--controls 20000: give 0 to 10000",
        "--layers --top 3": "--layers shows the first of each layer",
        "-o 'p-{head}.json'": "only of a text's heads has each a file",
    },
    "predict": {
        "'the door opened' -m demo": "no [MASK] to fill",
        "'The door opened.' -m demo --layers": "no [MASK] to fill",
        "'The door opened.' -m demo-translate --layers": "writes a text of its own",
    },
    f"cite {CITED} -m demo-reader": {
        "": "--answer TEXT or --generate N: say whose sources are asked for",
        "--answer ' '": "the answer is empty",
        "--answer xylophone": "the vocabulary of demo-reader cannot spell it",
        "--answer red --generate 1": "give one of the two",
        "--answer red --by line": "passages are cut by word, sentence or passage",
        "--answer red --subsets 2": "a fit takes at least 8",
        "--answer red --context nobody": "nobody",
        "--answer red --passages no.json": "no.json",
        "--answer red --gold no.jsonl": "leave --answer out",
        "--answer red --target x": "the answer (--answer)",
        "--gold no.jsonl": "no.jsonl",
    },
    "cite": {
        "'A fact. {passages}' --answer red -m demo-reader": "--passages FILE gives them",
        "'One sentence.' --answer red -m demo-reader": "there are no two passages beside the question",
        f"{CITED} --answer red -m demo": "cite asks what a model wrote",
        f"'{'Velmir has. ' * 900}' --answer red -m demo-reader": "reads at most 2048",
    },
    f"compare {BANK} -m demo": {
        "": "missing option '--word'",
        "--word bank -l 0 --layer-b 1": "compare one thing at a time",
        "--word bank --model-b demo": "compare one thing at a time",
        "--word water": "the second text: no token 'water' in the input: tokens are 0 [CLS]",
        "--word money": "the first text: no token 'money'",
        "--word the": "the first text: token 'the' stands 2 times: choose one of the@4, the@8",
        "--word 9": "the second text: no token 9 in the input: positions 0-8",
        "--word bank -l 7": "no layer 7 in demo: layers 0-3",
        "--word bank --head 12": "no head 12 in demo",
        "--word bank --target x": "leave --target out",
        "--word elephant --words": "no token 'elephant' in the input: tokens are 0 [CLS], 1 I",
        "--word '[CLS]' --special hide": "no token '[CLS]' in the input: tokens are 1 I",
        "--word bank --block 1": "compare looks at block 0 of a layer: leave --block out",
    },
    "compare 'I sat on the bank.' -m demo": {
        "--word bank": "compare one thing at a time: give a second text, --texts, --layer-b or --model-b",
        "'' --word bank": "the text is empty",
        "--word bank --layer-b 1": "--layer-b needs --layer",
        "--word bank -l 0-2 --layer-b 1": "give one --layer and one --layer-b",
        "--word bank -l 1 --layer-b -3": "both layer 1: give two layers",
        "--word bank -l 1 --layer-b 9": "no layer 9 in demo",
        "--word bank -l 1 --layer-b 2 --word-b on": "leave --word-b",
    },
    "compare -m demo": {
        "- - --word bank": "only one of the two texts can come from standard input",
        "--texts t.txt --model-b demo --word box": "leave --word out",
        "--texts t.txt --model-b demo 'the door'": "leave TEXT out",
        "--texts t.txt --model-b demo --words": "leave --by, --words and --special out",
        "--texts t.txt --model-b demo --fail-above 2": "lies between 0 and 1",
        "--texts t.txt --fail-above .1 --word box": "give --model-b and --texts",
        "--texts t.txt --model-b demo-causal": "models of one shape",
        "--texts long.txt --model-b demo": "long.txt:2: ",
        "--texts t.txt --word door": "t.txt:3: ",
        "--texts t.txt --word the --layer-b 1": "--texts is all that is read: leave --layer-b out",
        "--texts t.txt --word the --controls 0": "--controls 0: give 1 to",
    },
    f"find {DOOR} -m demo": {
        "--pattern zzz": "no pattern 'zzz': previous, next, self",
        "--pattern previous --like L0H1": "say what to find",
        f"--pattern next --image {PICTURE}": "reads no pictures: leave --image out",
        "--head mean --from I --to door": "heads and flow show the mean over heads",
        "--from I --to door --seed -1": "--seed is -1: it must be from 0 to",
    },
    "find --pattern retrieval -m demo-reader": {
        "--lengths 70,5000": "--lengths 5000: demo-reader reads at most 2,048",
        "--lengths 30": "--lengths 30: no room for the facts",
        "--lengths many": "--lengths 'many': numbers of tokens, 512,2048",
        "--needles 1": "--needles 1: give 2 to 500",
        "--ids 3,4": "leave --ids out",
        "--facts nowhere.jsonl": "nowhere.jsonl",
        "-m demo": "--pattern retrieval looks where a model writes an answer",
    },
    "flow": {
        "'I saw it.' -m demo-translate --target \"j'ai vu la porte.\" --from porte": "leads to another text",
        f"{DOOR} -m demo --from door --layer 2": "choose the first layers, --layer 0-2",
        f"{DOOR} -m demo --from pooled -o f.py": "none computes a pooled vector again",
        f"{DOOR} -m demo": "no --from",
        f"{DOOR} -m demo --from door --seed -1": "--seed is -1: it must be from 0 to",
    },
    f"explain {DOOR} -m demo --from '[MASK]'": {
        "": "--to",
        "--to door --controls 0": "--controls 0: give 1 to",
        "--to door --layer 9": "layers 0-3",
        "--to door -o again.py": "no script: it is several questions: find, ablate, flow and compose",
    },
    "explain 'a door opened' -m demo-causal": {"--from 0 --to 2": "may not look at"},
    "why 'The [MASK] opened.' -m demo": {
        "": "no --from: why takes",
        "--from 2": "no --to: why takes",
        "--answer window --from 1": "demo tags none: leave it out",
        "--answer window --layer 1": "leave the head and --to out",
        "--answer window --against window": "is the answer itself",
        "--answer qwertyu": "has no token 'qwertyu'",
        "--answer window --patch-from 'The old [MASK] opened.'": "the texts have 6 and 7 tokens",
        "--answer window --dtype bfloat16": "--dtype float32",
        "-l 1 --head 2 --from 2 --to 1 -o again.py": "no script: its sum needs every operation of the run",
    },
    "why": {
        "'The door.' -m demo --answer it": "the text has no [MASK] to fill",
        "'the cat' -m demo-translate --answer le": "writes a text of its own",
        "'a cat sat' -m demo-causal -l 1 --head 1 --from 0 --to 2": "which follows it",
    },
    "model": {
        "demo --length some": "--length 'some': numbers of tokens, such as 512 or 128,1024,8192",
        "demo --length 8,": "--length '8,': numbers of tokens, such as 512 or 128,1024,8192",
        "demo --length 8,0": "--length 0: a text has 1 to 1,000,000,000 tokens, demo reads at most",
        "demo --layer 4": "no layer 4 in demo (encoder): layers 0-3",
        "demo --layer 1-2": "the cost is that of one layer, --layer names 2: 1-2",
        "demo --layer x": "--layer 'x' is not a list",
        "demo --kind cross": "demo has no cross attention: it has encoder",
        "demo-translate --tower eye": "demo-translate has no tower 'eye'",
        "''": "the name of the model is empty",
    },
    f"report {DOOR} -m demo": {
        "--head 1,2": "this needs one head",
        "--max-iter 3": "max-iter is 3",
        "-o page.gif": "the name must end in .png, .svg, .pdf, .npz, .csv, .json",
        "--query '[CLS]' --special hide": "[CLS] is a special token and left out",
    },
    f"tsne {DOOR} -m demo": {
        "--key door": "name a query",
        "--compare-query door": "name a query",
        "--max-iter 1e1": "max-iter is 10: it must be from 250",
        "--max-iter 1e400": "'1e400' is not a whole number",
        "--max-iter 300.5": "'300.5' is not a whole number",
        "--max-iter many": "'many' is not a whole number",
        "--seed -1": "the seed is -1",
        "--head mean": "the mean over heads has weights alone, this is of one head",
        "-o map.gif": "cannot write 'map.gif'",
    },
    f"tsne {PIECES} -m demo --words --special hide": {
        "--query '[CLS]'": "no token '[CLS]' in the input: tokens are 1 The, 2 detective, 11 was",
        "--query was --key '[SEP]'": "no token '[SEP]' in the input: tokens are 1 The",
        "--query 0": "no token 0 in the input: positions 1",
    },
    "compose -m demo-causal": {"--seed -1": "--seed is -1: it must be from 0 to"},
    "sdpa": {
        "--scoring best": "invalid value for '--scoring'",
        "--q 1,0 --k '1,0,1; 0,1,0' --v '1;2'": "Q is 1 x d_k=2, K is 2 x d_k=3: d_k must agree",
        "--q nowhere.csv --k 1 --v 1": "cannot read 'nowhere.csv': no such file",
        "nowhere.json": "cannot read 'nowhere.json': no such file",
        "arrays.txt": "name a .json or .npz file",
        "--example pear": "no example 'pear': dictionary, fruit",
        "--example fruit --q 1": "give one of these: arrays, --table or --example",
        "--example fruit --table a=1": "give one of these",
        "--example fruit --lookup a": "--lookup goes with",
        "--example theatre --causal": "as they are",
        "--example why-scale --no-scale": "leave out",
        "--example theatre --head 12": "no head 12",
        "--example theatre --head all": "one head",
        "--model demo": "--head and --kind go with --example theatre",
        "--scores '1 2' --no-scale": "--scores are given",
        "--scores '1 inf'": "--scores, row 0, column 1: 'inf' is no finite number",
        "--q -inf --k 1 --v 1": "'-inf' is no finite number",
        "--q 1e999 --k 1 --v 1": "'1e999' is no finite number",
        "--q 1_0 --k 1 --v 1": "'1_0' is no finite number",
        "--q ' ; ' --k 1 --v 1": "--q is empty",
        "--q 1 --k 1 --v 1 --d-k 3": "--d-k goes with --scores",
        "--q 1 --k 1 --v 1 --keys a,,b": "--keys 'a,,b' has an empty name",
        "--example fruit --wrong pear": "no mistake 'pear': no-transpose",
        "--example why-scale --wrong no-scale": "not with a study",
        "--table a=1,b": "'b' is no entry such as apple=9",
        "--table a=1,a=2": "two values for 'a'",
        "--table a=x": "--table, a: 'x' is no finite number",
        "--no-scale --scoring additive": "--no-scale contradicts --scoring additive",
        "--scoring additive --q 1 --k 1 --v 1": "additive_wq = Aq (d_q x d_a)",
        "--example theatre -m demo-causal -l 1 --head 1": "rotary positions are turned into its queries",
    },
    "verify door -m demo": {"--pair ' '": "one text of the pair is empty"},
    "heads --texts t.txt -m demo": {"'the door'": "--texts is all that is read: leave TEXT out"},
    "tsne --texts t.txt -m demo": {"'the door'": "--texts is all that is read: leave TEXT out"},
    "predict --texts t.txt -m demo": {"--ids 1,2 --image a.png": "leave --ids and --image out"},
    "find --from 1 --to 2 -m nowhere/there": {  # before the model is sought
        "'{a} slept' --fill none.csv": "'none.csv': no such file",
        "'{a} slept' --fill t.csv": "the table has no column 'a': it has who, thing, what",
        "'{wo} slept' --fill t.csv": "did you mean {who}?",
        "'a dog slept' --fill t.csv": "the template has no field: write one as {a}",
        "'{who slept' --fill t.csv": "no template: expected '}' before end of string",
        "'{} slept' --fill t.csv": "a field without a plain name: write {a}",
        "'{who} slept' --fill empty.csv": "no row in 'empty.csv'",
        "'{who} slept' --fill twice.csv": "names a column twice, or not at all: who, who",
        "--fill t.csv --texts t.jsonl": "give one of the two",
        "--fill t.csv": "--fill fills the fields of TEXT: give one",
        "--texts empty.jsonl": "no text in 'empty.jsonl'",
        "'{who} slept' --fill t.csv -o x.py": "cannot write 'x.py'",
        "'the door' --fragment": "--fragment is about a page: name one with -o (.html)",
        "'the door' --fragment -o x.png": "--fragment is about a page: name one with -o (.html)",
    },
}
ROWS = [(f"{begins} {asked}", says) for begins, rows in REFUSED.items() for asked, says in rows.items()]
FILES = {
    "t.txt": "the door\n\nthe river\n",
    "long.txt": f"the door\n{'the door ' * 400}\n",
    "t.csv": "who,thing,what\ndog,door,opened\n",
    "empty.csv": "who\n\n",
    "twice.csv": "who,who\na,b\n",
    "t.jsonl": json.dumps({"text": "The dog saw the door."}),
    "empty.jsonl": " \n",
}


@pytest.mark.parametrize(("asked", "says"), ROWS, ids=[asked[:80] for asked, _ in ROWS])
def test_what_cannot_be_is_refused_in_one_line(
    refused: Refused, tmp_path: Path, asked: str, says: str
) -> None:
    for name, content in FILES.items():
        if name.partition(".")[0] in asked:
            (tmp_path / name).write_text(content, "utf-8")
    refused(says, *shlex.split(asked))


@pytest.mark.parametrize("asked", BEFORE_WEIGHTS)
def test_a_wrong_name_is_one_line_and_no_weight_is_read(
    refused: Refused, no_weights: None, asked: str
) -> None:
    refused(BEFORE_WEIGHTS[asked], *shlex.split(asked.replace("DOOR", DOOR)), "-m", "demo")


def test_without_a_wrong_name_weights_would_be_read(attnscope, no_weights: None) -> None:
    with pytest.raises(AssertionError, match="weights were read"):
        attnscope(*shlex.split(f"find {DOOR} --from [MASK] --to 'the door' -m demo"))


def spoiled(command: str) -> list[tuple[list[str], str]]:
    """Every way to misuse the options of a command, and what the one line says of it."""
    parameters = get_command(app).commands[command].params
    told = f" (see attnscope {command} --help)"
    required = [each for each in parameters if each.required]
    needed = [word for each in required if each.param_type_name == "option" for word in (each.opts[0], "a")]
    needed += ["--word", "a"] if command == "compare" else []
    flag = "--json" if any("--json" in each.opts for each in parameters) else "--quiet"
    ways = [
        (["--nonsense"], f"no such option: --nonsense{told}"),
        (["--nonsense=3"], "no such option: --nonsense"),
        (["-Z"], "no such option: -Z"),
        ([flag[:-1] + "m"], f"no such option: {flag[:-1]}m"),
        ([f"{flag}=3"], f"option '{flag}' does not take a value"),
        (["--\u202e\x9b31m\U000e0041\n"], r"no such option: --\u202e\x9b31m\U000e0041"),
    ]
    given = [each for each in parameters if each.param_type_name == "argument"]
    if all(each.nargs == 1 for each in given):  # any number of files may stand where there is more
        ways.append((["a", "b", "c", *needed], "got unexpected extra argument"))
    takes_value = [each for each in parameters if each.param_type_name == "option" and not each.is_flag]
    ways += [([each.opts[0]], f"option '{each.opts[0]}' requires an argument") for each in takes_value]
    if required:
        ways.append(([], f"missing {required[0].param_type_name} '"))
    return ways


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_whatever_is_wrong_with_the_options_of_a_command_is_one_line(refused: Refused, command: str) -> None:
    for arguments, says in spoiled(command):
        refused(says, command, *arguments)
