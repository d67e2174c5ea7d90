"""Sentences in a page: the question, the sentence, its figures, and the command that shows more."""

from attnscope.render.sheet.drawings import Statement, Statements
from attnscope.render.web.blocks import escape
from attnscope.render.web.ranking import paragraph


def statements(block: Statements) -> str:
    """One below the other. All text is escaped."""
    title = f"<h2>{escape(block.title)}</h2>" if block.title else ""
    return title + "".join(map(_told, block.statements))


def _told(told: Statement) -> str:
    command = f'<p class="told"><code>{escape(told.command)}</code></p>' if told.command else ""
    said = f'<p class="said">{escape(told.sentence)}</p>{paragraph(told.figures, "told")}'
    return f'<div class="statement"><h2>{escape(told.question)}</h2>{said}{command}</div>'
