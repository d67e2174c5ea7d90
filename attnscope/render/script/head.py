"""The weights of one head, the largest first, beside those that the model returns itself."""

from attnscope.render.script.again import SHOWN, Figures, attention, inputs, load, report


def figures() -> Figures:
    weights = attention(load(), inputs())[SHOWN["layer"]][SHOWN["head"]]
    for query, key, shown in SHOWN["weights"]:
        name = f"{query} {SHOWN['queries'][query]} -> {key} {SHOWN['keys'][key]}"
        yield name, shown, float(weights[query, key])


if __name__ == "__main__":
    report(figures())
