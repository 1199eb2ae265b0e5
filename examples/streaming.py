"""Show a value while it is being written, as typed fields, and stop when there is enough of it."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, Field

import structgen as sg


class Step(BaseModel):
    what: str = Field(min_length=1, max_length=40)
    minutes: int = Field(ge=1, le=90)


class Recipe(BaseModel):
    title: str = Field(min_length=1, max_length=30)
    steps: list[Step] = Field(min_length=2, max_length=4)


def watch(generator: sg.Generator[Recipe], prompt: str) -> None:
    """Print each step as soon as it is finished: a new one has begun behind it."""
    shown = 0
    for event in generator.stream(prompt):
        steps = getattr(event.partial, "steps", [])
        finished = len(steps) if event.result else len(steps) - 1
        for step in steps[shown:finished]:
            print(f"{step.minutes:3} min  {step.what}")
        shown = max(shown, finished)


async def title_of(generator: sg.Generator[Recipe], prompt: str) -> str:
    """The title; the model writes nothing behind it, since leaving the loop stops it."""
    async for event in generator.astream(prompt):
        if "steps" in getattr(event.partial, "model_fields_set", ()):
            return event.partial.title
    raise AssertionError("a recipe has steps")


def main() -> None:
    generator = sg.Generator(Recipe, sg.default_lm(), max_new_tokens=160)
    watch(generator, "How do I cook tomato soup?")
    print("Title:", asyncio.run(title_of(generator, "How do I bake bread?")))


if __name__ == "__main__":
    main()
