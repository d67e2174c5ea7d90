"""The command that stands below `Next:` on a screen, as a shell reads it when it is pasted."""

import shlex


def following(shown: str) -> list[str]:
    """Its words; a line that ends in a backslash goes on in the one below."""
    command = shown.partition("\nNext: ")[2].partition("\n")[2]
    return shlex.split(command.replace("\\\n", ""))
