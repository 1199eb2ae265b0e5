"""A type that contains itself: an outline of sections, of any depth, always well-formed."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, Field

import structgen as sg


@sg.structured
class Section(BaseModel):
    """A section of a document and its subsections."""

    title: str = Field(min_length=3, max_length=40)
    sections: list[Section] = Field(max_length=3)


def lines(section: Section, depth: int = 0) -> Iterator[str]:
    yield "  " * depth + section.title
    for inner in section.sections:
        yield from lines(inner, depth + 1)


def main() -> None:
    generator = sg.Generator(Section, sg.default_lm(), max_new_tokens=150)
    result = generator.run("Write an outline for a handbook about growing tomatoes.")
    print("\n".join(lines(result.value)))
    print(f"({result.usage.completion_tokens} tokens, finish_reason={result.finish_reason!r})")


if __name__ == "__main__":
    main()
