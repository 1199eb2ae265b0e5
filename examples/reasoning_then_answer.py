"""Properties are written in declared order, so that a model can reason before it answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

import structgen as sg

QUESTION = "Is this review good or bad? The soup was cold and the waiter was rude."


class Answer(BaseModel):
    answer: Literal["good", "bad"]


class ReasonedAnswer(BaseModel):
    reasoning: str = Field(max_length=100)
    answer: Literal["good", "bad"]


def main() -> None:
    lm = sg.default_lm()
    for schema in (Answer, ReasonedAnswer):
        result = sg.Generator(schema, lm, max_new_tokens=80).run(QUESTION)
        score = result.labels["$.answer"]
        print(f"{schema.__name__}: {result.text}")
        print(f"  {score.label} has the probability {score.probability:.2f} among the labels;")
        print(f"  with probability {score.valid_mass:.2f} a model without a mask would write one")


if __name__ == "__main__":
    main()
