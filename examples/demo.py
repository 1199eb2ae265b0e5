"""Sort twenty support messages with the default model, and check every object: `make demo`."""

from __future__ import annotations

import json
import statistics
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError
from tqdm import tqdm

import structgen as sg

MESSAGES = Path(__file__).with_name("messages.jsonl")
QUESTION = (
    "What does this customer want, and which team should answer: billing, technical or sales?"
)


@sg.structured(ignore=["descriptions", "way-out"])
class Triage(BaseModel):
    """Sort a customer's message."""

    reasoning: str = Field(max_length=120)
    team: Literal["billing", "technical", "sales"]
    urgent: bool
    order: int | None = Field(ge=1000, le=9_999_999)
    tags: list[Annotated[str, Field(min_length=2, max_length=16)]] = Field(max_length=3)


def main(messages: Sequence[str] | None = None) -> int:
    """Print a table of the objects and a summary; returns 1 if an object is not valid."""
    if messages is None:
        lines = MESSAGES.read_text(encoding="utf-8").splitlines()
        messages = [json.loads(line)["message"] for line in lines]
    # This small model does better with a question than with the schema's description.
    generator = sg.Generator(Triage, sg.default_lm(), max_new_tokens=120, schema_prompt=False)
    bar = tqdm(messages, desc="messages", disable=None)
    results = [generator.run(f"{QUESTION}\n\n{message}") for message in bar]
    print(table(list(zip(messages, results, strict=True))))
    n_valid = sum(is_valid(result.text) for result in results)
    print("\n".join(summary(results, n_valid)))
    return 0 if n_valid == len(results) else 1


def is_valid(text: str) -> bool:
    """Whether Pydantic accepts the text, which is asked independently of structgen."""
    try:
        Triage.model_validate_json(text)
    except ValidationError:
        return False
    return True


def table(rows: Sequence[tuple[str, sg.Generation[Triage]]]) -> str:
    """The objects as aligned text."""
    header = ("message", "team", "sure", "urgent", "order", "tags", "reasoning")
    widths = (26, 9, 4, 6, 7, 24, 60)
    cells = [header, tuple("-" * width for width in widths)]
    for message, result in rows:
        value, sure = result.value, result.labels["$.team"].probability
        order = "" if value.order is None else str(value.order)
        tags, urgent = ", ".join(value.tags), "yes" if value.urgent else "no"
        cells.append((message, value.team, f"{sure:.2f}", urgent, order, tags, value.reasoning))
    return "\n".join(
        "  ".join(fit(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def fit(text: str, width: int) -> str:
    """The text cut or padded to so many columns of a terminal; unprintable characters as `?`."""
    shown, used = "", 0
    for character in " ".join(text.split()):
        character = character if character.isprintable() else "?"
        columns = n_columns(character)
        if used + columns > width:
            # Make room for the ellipsis, which takes one column.
            while used >= width:
                used -= n_columns(shown[-1])
                shown = shown[:-1]
            return f"{shown}…" + " " * (width - used - 1)
        shown, used = shown + character, used + columns
    return shown + " " * (width - used)


def n_columns(character: str) -> int:
    """Columns that a character takes: 2 for East Asian ones and emoji, 0 for combining marks."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def summary(results: Sequence[sg.Generation[Triage]], n_valid: int) -> list[str]:
    """What happened, as lines of text."""
    usages, timings = [r.usage for r in results], [r.timings for r in results]
    n_tokens = sum(usage.completion_tokens for usage in usages)
    n_passes = sum(usage.forward_passes for usage in usages)
    total_s = sum(timing.total_s for timing in timings)
    forward_s = sum(timing.forward_s for timing in timings)
    first_masks_ms = [timing.first_mask_s * 1e3 for timing in timings]
    reasons = Counter(result.finish_reason for result in results)
    return [
        "",
        f"valid objects            {n_valid} of {len(results)}",
        f"finish reasons           {', '.join(f'{k} {n}' for k, n in reasons.items())}",
        f"tokens                   {n_tokens}, {n_tokens / total_s:.1f} per second",
        f"forward passes           {n_passes}, {n_passes / n_tokens:.2f} per token",
        f"time to first mask       {first_masks_ms[0]:.0f} ms for the first message, median "
        f"{statistics.median(first_masks_ms):.0f} ms",
        f"time outside the model   {1 - forward_s / total_s:.1%} of {total_s:.1f} s",
    ]


if __name__ == "__main__":
    sys.exit(main())
