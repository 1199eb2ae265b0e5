"""A type that contains itself: an outline, as deep as the model wants, always closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, Field

import structgen as sg


@sg.structured(ignore=["descriptions"])
class Section(BaseModel):
    """A section of a document and its subsections."""

    title: str = Field(min_length=3, max_length=40)
    points: list[Annotated[str, Field(min_length=3, max_length=40)]] = Field(max_length=3)
    sections: list[Section] = Field(max_length=2)


def lines(section: Section, depth: int = 0) -> Iterator[str]:
    indent = "    " * depth
    yield f"{indent}{section.title}"
    yield from (f"{indent}  - {point}" for point in section.points)
    for inner in section.sections:
        yield from lines(inner, depth + 1)


def main() -> None:
    # This small model does better without the schema's description in the prompt.
    generator = sg.Generator(Section, sg.default_lm(), max_new_tokens=170, schema_prompt=False)
    result = generator.run("Write an outline for a handbook about growing tomatoes.")
    print("\n".join(lines(result.value)))
    print(f"({result.usage.completion_tokens} tokens, finish_reason={result.finish_reason!r})")


if __name__ == "__main__":
    main()
