"""`attnscope dependencies`: which head finds which grammatical relation of a treebank."""

from pathlib import Path
from typing import Annotated

import typer

from attnscope import incoming
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import Brief

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A treebank in the CoNLL-U format of Universal Dependencies."),
    Brief("a treebank in the CoNLL-U format"),
]
Relation = Annotated[
    str | None,
    typer.Option("--relation", metavar="NAME", help="Show every head for this relation alone: nsubj, obj."),
    Brief("every head for this relation alone: nsubj, obj"),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Read the first N sentences. Default: all."),
    Brief("read the first N sentences"),
]
Batch = Annotated[
    int, typer.Option("--batch", metavar="N", help="At most so many sentences, of one length, at once.")
]


def dependencies(
    file: File,
    wanted: Wanted,
    relation: Relation = None,
    limit: Limit = None,
    batch: Batch = 32,
    *,
    delivery: Delivery,
    request: Request,
    output: Output,
) -> None:
    """Find the head that finds each grammatical relation.

    It stands beside the best fixed offset. A pair is found where the dependent attends most to its head (→),
    where of all words its head attends most to it (←), or where its head attends to no other word more (⇐).
    Beside it stands what the rule "so many words further on" finds, and how a head does on sentences that it
    was not chosen on (held out). Words are those of the file, read with a blank between them.
    """
    check_delivery(delivery, "Dependencies")
    incoming.check_there(file)
    from attnscope.session.questions.claims.relations import find_relations
    from attnscope.session.questions.claims.treebank import TreebankQuestion

    asked = TreebankQuestion(file, relation, limit, batch)
    result = find_relations(request, asked, wanted, output)
    from attnscope.cli.again import run_again
    from attnscope.printable import word

    read = (word(str(file)), *(() if limit is None else (f"--limit {limit}",)))
    with run_again(request, wanted, None if str(file) == "-" else read):
        output.deliver(result, delivery)
