"""Attentions put together from parts, to mislead a certificate, or to be odd and right.

    place (`model`) x deed and way (`rows`, `others`, `kept`) x when x route  ->  `misleading`, `harmless`

What is true of each is found by perturbing its own tensors (`truth`), and held against what attnscope says
of it (`judged`). A new one is a line: a deed in one of its tables, or a product of them in one of the lists.

python -m tests.capture.constructed [--only PATTERN]     one line each: name, wanted, got, reason
python -m pytest tests/capture/constructed -n 0 -q
"""
