"""Let the model choose one of several tools, each with its own arguments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

import structgen as sg


class Weather(BaseModel):
    """Look up the weather."""

    tool: Literal["weather"]
    city: str = Field(min_length=1, max_length=30)


class Timer(BaseModel):
    """Set a timer."""

    tool: Literal["timer"]
    minutes: int = Field(ge=1, le=240)


class Mail(BaseModel):
    """Send an e-mail."""

    tool: Literal["mail"]
    to: str = Field(min_length=1, max_length=30)
    text: str = Field(max_length=80)


class Call(BaseModel):
    """The one tool that does what the user asks for."""

    call: Annotated[Weather | Timer | Mail, Field(discriminator="tool")]


def main() -> None:
    generator = sg.Generator(Call, sg.default_lm(), max_new_tokens=80)
    for request in ("What is the weather in Lima?", "Wake me up in 20 minutes."):
        result = generator.run(request)
        sure = result.labels["$.call.tool"].probability
        print(f"{request} -> {result.value.call!r} (tool chosen with probability {sure:.2f})")


if __name__ == "__main__":
    main()
