"""`attnscope heads`: what can be asked, and the command that answers."""

from attnscope.cli.commands.heads.command import heads

__all__ = ["heads"]
