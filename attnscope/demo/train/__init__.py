"""The programs that trained the bundled models: `python -m attnscope.demo.train`. They are not in the wheel.

`english` makes sentences and stories, `bilingual` says them in French as well, `corpora` draws the training
streams from both and keeps the held-out part away; `encoder`, `causal` and `translate` train one model each,
`evaluation` measures it and `cards` writes what was measured into its model card.
"""
