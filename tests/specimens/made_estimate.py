"""An estimate whose sums are easy."""

from dataclasses import replace

import made_results

from attnscope.results.claims.estimate import Estimate, Sampled, Term


def estimate() -> Estimate:
    return Estimate(
        files=("news.txt", "more.txt"),
        size=3_000_000,
        sampled=Sampled(texts=120, tokens=2400, bytes=12_000, error=0.03),
        terms=(
            Term("start: libraries", 3.0, "command", 1, driver=True),
            Term("start: and the model", 5.0, "worker", 8),
            Term("forward pass", 0.5, "1,000 tokens", 400),
            Term("merging parts", 0.2, "split", 60, driver=True),
        ),
        texts=20_000.0,
        tokens=400_000.0,
        splits=60,
        workers=4,
        machines=2,
        memory=700_000_000,
        kept=9e6,
        provenance=replace(made_results.head().provenance, token_ids=()),
    )
