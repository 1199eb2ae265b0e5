"""Let the model call functions: one call, several calls, or none."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

import structgen as sg

City = Annotated[str, Field(min_length=1, max_length=20)]


def forecast(city: City, day: Literal["today", "tomorrow"] = "today") -> str:
    """Look up the weather of a city."""
    return f"rain in {city} {day}"


def set_timer(minutes: Annotated[int, Field(ge=1, le=240)]) -> str:
    """Set a timer."""
    return f"ringing in {minutes} minutes"


def main() -> None:
    lm = sg.default_lm()
    tools = sg.tools([forecast, set_timer])
    # This small model does better without the schema's description in the prompt.
    generator = sg.Generator(tools, lm, max_new_tokens=60, schema_prompt=False)
    for request in ("What is the weather in Lima?", "Set a timer for 20 minutes."):
        call = generator(request)
        print(f"{request} -> {call.name} ({call.probability:.2f}): {call.call()}")

    forced = sg.Generator(tools.only("set_timer"), lm, max_new_tokens=60, schema_prompt=False)
    print(f"only a timer: {forced('Tea takes 4 minutes.').call()}")

    several = sg.tools([forecast, set_timer], parallel=True, max_calls=2)
    calls = sg.generate(several, "Weather in Lima and in Quito?", max_new_tokens=90)
    print("several:", "; ".join(call.call() for call in calls))


if __name__ == "__main__":
    main()
