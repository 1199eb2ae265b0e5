"""Let the model choose one of several tools, each with its own arguments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

import structgen as sg


class Weather(BaseModel):
    tool: Literal["weather"]
    city: str = Field(min_length=1, max_length=30)


class Timer(BaseModel):
    tool: Literal["timer"]
    minutes: int = Field(ge=1, le=240)


class Mail(BaseModel):
    tool: Literal["mail"]
    to: str = Field(min_length=1, max_length=30)
    text: str = Field(max_length=80)


class Call(BaseModel):
    call: Annotated[Weather | Timer | Mail, Field(discriminator="tool")]


def main() -> None:
    # This small model does better without the schema's description in the prompt.
    generator = sg.Generator(Call, sg.default_lm(), max_new_tokens=80, schema_prompt=False)
    for request in ("What is the weather in Lima?", "Set a timer for 20 minutes."):
        result = generator.run(request)
        print(f"{request} -> {result.value.call!r}")
        print(f"  tool chosen with probability {result.labels['$.call.tool'].probability:.2f}")


if __name__ == "__main__":
    main()
