"""What the default model is asked to write, end to end: objects of structure, and of text."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from structgen.bench.workload import Closed


class WeatherCall(Closed):
    """A tool call."""

    tool: Literal["get_weather"]
    location: str = Field(max_length=30)
    unit: Literal["celsius", "fahrenheit"]
    include_forecast: bool
    number_of_days: int = Field(ge=1, le=14)


class Request(Closed):
    """Flat."""

    customer_name: str = Field(max_length=30)
    order_number: int = Field(ge=0, le=99999)
    priority: Literal["low", "medium", "high"]
    refund_requested: bool
    department: Literal["billing", "technical", "sales"]
    sentiment: Literal["positive", "negative", "neutral"]


class Verdict(Closed):
    """One long text, then the answer."""

    reasoning: str = Field(min_length=150, max_length=300)
    answer: bool


class Note(Closed):
    """Two texts and nothing else."""

    title: str = Field(min_length=20, max_length=60)
    text: str = Field(min_length=120, max_length=240)


TASKS: dict[str, type[BaseModel]] = {
    "tool call": WeatherCall,
    "flat": Request,
    "reasoning": Verdict,
    "texts": Note,
}
STRUCTURE_HEAVY = ("tool call", "flat")

PROMPTS = (
    "What is the weather in Berlin tomorrow, please in celsius?",
    "My card was charged twice for order 48213, says Ada Lovelace.",
    "Is the earth round? Explain.",
    "Paris weather for three days",
    "Tom wants a refund for order 77",
    "Is it cold in Oslo?",
    "Please check the forecast for Rome",
    "Anna: order 3 arrived broken",
    "Will it rain in Madrid on Sunday?",
    "Grace Hopper was billed for order 1906 but never got it.",
    "Why is the sky blue?",
    "Temperatures in New York for the next five days, in fahrenheit",
    "Order 512 is the wrong size, I would like to swap it. Kurt",
    "Can a triangle have two right angles?",
    "Is there snow in Zurich?",
    "Thank you, order 60 came a day early! Maria",
)
"""Twice as many as the rows of a large batch: rows that are done make room for others."""

MAX_NEW_TOKENS = 160
