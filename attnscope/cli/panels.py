"""The help of a command, its options under headings instead of in one long list."""

from typing import Any

from typer.core import TyperCommand

from attnscope.cli.examples import EXAMPLES

SHOWN = "What is shown, and how"  # of the options that a command has for itself
PICTURES = "Pictures"
BESIDES = "Besides"


class Panelled(TyperCommand):
    """A command whose options stand under what they are about, as `options.grouped` has noted it.

    Its help opens with its `EXAMPLES`, in lines that are never broken.
    """

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for example in EXAMPLES[self.name or ""]:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options, the headings in the order in which they first occur."""
        noted: dict[str, str] = getattr(self.callback, "panels", {})
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_option = parameter.param_type_name == "option"
                panel = noted.get(parameter.name or "", BESIDES) if is_option else "Arguments"
                panels.setdefault(panel, []).append(record)
        for heading, records in panels.items():
            if not records:
                continue
            with formatter.section(heading):
                formatter.write_dl(records)
