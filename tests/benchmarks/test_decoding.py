"""End to end on the default model: what structgen costs beside the model's own work."""

from __future__ import annotations

import pytest

import structgen as sg
from structgen.errors import MissingDependencyError
from tests.benchmarks.reporting import Report
from tests.benchmarks.workload import Order, Person

pytestmark = pytest.mark.bench

TEXTS = (
    "Ada Lovelace, 36, ada@example.org, wrote the first program.",
    "My card was charged twice for order 48213! Please send the refund to Lindenstraße 12, Berlin.",
)


def test_share_outside_the_model(report: Report) -> None:
    try:
        lm = sg.load()
    except MissingDependencyError as error:
        pytest.skip(f"the default model is not installed: {error}")
    for model in (Person, Order):
        generator = sg.Generator(model, lm, max_new_tokens=160)
        generator.run(TEXTS[0])
        for text in TEXTS:
            run = generator.run(text)
            decoding = run.timings.forward_s + run.timings.mask_s
            figures = {
                "outside": f"{1 - run.timings.forward_s / run.timings.total_s:.1%}",
                "masks": f"{run.timings.mask_s / decoding:.1%}",
                "tokens": run.usage.completion_tokens,
                "passes a token": round(run.usage.forward_passes / run.usage.completion_tokens, 2),
                "tokens/s": round(run.usage.completion_tokens / run.timings.total_s, 1),
            }
            report.add(f"decoding {model.__name__} on SmolLM2", figures, "outside <= 5 %")
