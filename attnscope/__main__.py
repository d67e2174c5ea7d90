"""Entry point of `attnscope` and `python -m attnscope`.

The answer to Ctrl-C stands before anything that takes time is imported. What Python does before it comes to
this module cannot be covered: an interrupt that falls into that ends in Python's own way.
"""

from attnscope.process.ending import answer_signals


def main() -> None:
    """Entry point of the `attnscope` command."""
    answer_signals()
    from attnscope.process.machine import hasten

    hasten()
    from attnscope.process.standard_error import show_bugs_harmlessly

    show_bugs_harmlessly()
    from attnscope.cli.app import main as program

    program()


if __name__ == "__main__":
    main()
