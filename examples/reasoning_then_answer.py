"""Properties are written in declared order, so a model that reasons first can answer better."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

import structgen as sg

QUESTION = "A shop sells pens at 2 euros each. Tom buys 4 pens. How many euros does he pay?"
Euros = Literal["2", "4", "6", "8"]


class Answer(BaseModel):
    answer: Euros


class ReasonedAnswer(BaseModel):
    reasoning: str = Field(max_length=150)
    answer: Euros


def main() -> None:
    lm = sg.default_lm()
    for schema in (Answer, ReasonedAnswer):
        result = sg.Generator(schema, lm, max_new_tokens=100).run(QUESTION)
        score = result.labels["$.answer"]
        print(f"{schema.__name__}: {result.text}")
        print(f"  {score.label} with probability {score.probability:.2f}")
        print(f"  (unmasked, the model would have written a legal token: {score.valid_mass:.2f})")


if __name__ == "__main__":
    main()
