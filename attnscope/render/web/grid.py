"""A number for every head in a page: shaded cells, and under the pointer what stands with each number."""

from attnscope.render.kit.palette import TINTS
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.scale import missing
from attnscope.render.web.blocks import escape, shaded, strip

_MOST_NUMBERS = 24  # heads of a layer whose number stands in its cell


def grid(block: HeadGrid, leads: bool = False) -> str:
    """Layers down and heads across under what the shades mean; a cell is a link where the page `leads`."""
    columns = range(len(block.heads))
    heads = "".join(f'<th scope="col">H{each}</th>' for each in block.heads)
    rows = "".join(
        f'<tr><th scope="row">L{layer}</th>{"".join(_cell(block, i, j, leads) for j in columns)}</tr>'
        for i, layer in enumerate(block.layers)
    )
    told = "; ".join(each for each in (block.says, *_marks(block)) if each)
    kind = "heads" if len(columns) <= _MOST_NUMBERS else "heads many"
    return (
        f'<h2>{escape(block.heading)}</h2><p class="told">{_shades(block)} {escape(told)}</p>'
        f'<div class="wide"><table class="{kind}"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(block: HeadGrid, i: int, j: int, leads: bool) -> str:
    if block.itself == (i, j):
        return f'<td title="{block.name(i, j)}">■</td>'
    value, text = float(block.values[i, j]), block.text(i, j)
    if missing(value):
        return f"<td>{escape(text)}</td>"
    outline = _outline(block, i, j)
    shown = escape(text) if len(block.heads) <= _MOST_NUMBERS else ""
    address = f"#L{block.layers[i]}H{block.heads[j]}"
    link = f'<a href="{address}" aria-label="{block.name(i, j)}">{shown}</a>' if leads else shown
    shade = f'class="shade" style="{shaded(block.scale, value)}{outline}"'
    return f'<td {shade} title="{escape(_told(block, i, j))}">{link}</td>'


def _outline(block: HeadGrid, i: int, j: int) -> str:
    if (i, j) not in block.outlined:
        return ""
    verdict = block.outlined[i, j]
    colour = TINTS["limit"] if verdict is None else f"var(--{verdict.value})"
    return f";box-shadow:inset 0 0 0 2px {colour}"


def _told(block: HeadGrid, i: int, j: int) -> str:
    parts = [f"{block.name(i, j)}: {block.text(i, j)} ({float(block.values[i, j]):.7g})"]
    if (found := block.companion) is not None and (text := found.text(i, j)):
        parts.append(f"{found.label} {text}")
    if verdict := block.outlined.get((i, j)):
        parts.append(verdict_words(verdict))
    return ", ".join(parts)


def _shades(block: HeadGrid) -> str:
    low, high = (
        f"{number} {meant}".strip() for number, meant in zip(block.ends, block.scale.ends, strict=True)
    )
    return strip(block.scale, low, high)


def _marks(block: HeadGrid) -> list[str]:
    beyond = f"outlined: {block.beyond[0]}" if None in block.outlined.values() else ""
    return [beyond, "outlined: not certified" if any(block.outlined.values()) else ""]
