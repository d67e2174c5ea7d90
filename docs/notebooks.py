"""Runs the cells of a notebook as Jupyter does, and puts what they print and show under them."""

import ast
import base64
import io
import json
from contextlib import redirect_stdout
from typing import Any


def with_outputs(notebook: str) -> str:
    """`notebook`, the text of an .ipynb file, with the outputs of its cells as they are now."""
    document: dict[str, Any] = json.loads(notebook)
    names: dict[str, Any] = {}
    for count, cell in enumerate((each for each in document["cells"] if each["cell_type"] == "code"), 1):
        cell.update(execution_count=count, outputs=_outputs("".join(cell["source"]), names, count))
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What a cell prints, and what its last line shows where that is an expression: its picture, its text."""
    printed, value, body = io.StringIO(), None, ast.parse(source)
    last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(body, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    told: list[dict[str, Any]] = []
    if printed.getvalue():
        told.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"image/png": base64.b64encode(value._repr_png_()).decode(), "text/plain": _lines(repr(value))}
        told.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return told


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
