"""Turn free text into a nested object whose numbers and choices stay within their bounds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

import structgen as sg

TEXT = """Maria Silva, 34, lives in Porto, Portugal, with her two cats. She works as a nurse and
speaks Portuguese and English."""


class Home(BaseModel):
    city: str = Field(min_length=1, max_length=30)
    country: Literal["Portugal", "Spain", "France", "another one"]


@sg.structured(ignore=["descriptions"])
class Person(BaseModel):
    name: str = Field(min_length=1, max_length=40)
    age: int = Field(ge=0, le=120)
    home: Home
    job: Literal["nurse", "teacher", "engineer", "another one"]
    languages: list[Literal["Portuguese", "English", "French"]] = Field(max_length=2)


def main() -> None:
    generator = sg.Generator(Person, sg.default_lm(), max_new_tokens=120)
    result = generator.run(f"Who is this about?\n\n{TEXT}")
    print(result.value)
    for path, score in result.labels.items():
        print(f"{path:15} {score.label:14} with probability {score.probability:.2f}")


if __name__ == "__main__":
    main()
