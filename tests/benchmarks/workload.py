"""Models and real-looking values that the benchmarks write token by token."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Closed(BaseModel):
    """Undeclared keys are forbidden, so that every engine enforces the same objects."""

    model_config = ConfigDict(extra="forbid")


class Address(Closed):
    street: str = Field(max_length=80)
    zip_code: str
    country: Literal["de", "fr", "gb", "us"]


class Order(Closed):
    """The ten-field model."""

    reasoning: str = Field(max_length=400)
    team: Literal["billing", "technical", "sales"]
    urgent: bool
    count: int = Field(ge=1, le=10)
    score: float = Field(ge=0, le=1)
    order_number: str | None = None
    tags: list[Annotated[str, Field(max_length=20)]] = Field(max_length=5)
    address: Address
    price: float
    items: list[Address]


class Person(Closed):
    name: str
    age: int = Field(ge=0, le=150)
    email: str | None = None
    notes: list[str] = Field(default_factory=list)


class Search(Closed):
    tool: Literal["search"]
    query: str
    limit: int = Field(ge=1, le=100)


class Weather(Closed):
    tool: Literal["weather"]
    city: str
    unit: Literal["celsius", "fahrenheit"]


class Call(Closed):
    thought: str = Field(max_length=200)
    call: Search | Weather


HOME = Address(street="Lindenstraße 12", zip_code="10969", country="de")
OFFICE = Address(street="1600 Pennsylvania Avenue NW", zip_code="20500", country="us")

VALUES: tuple[Closed, ...] = (
    Order(
        reasoning='The customer says: "my card was charged twice" for order 48213, so billing has '
        "to look at the payment, and the tone is angry but polite \N{WORRIED FACE}.",
        team="billing",
        urgent=True,
        count=2,
        score=0.35,
        order_number="A-48213",
        tags=["refund", "payment", "zweite Mahnung"],
        address=HOME,
        price=129.95,
        items=[HOME, OFFICE],
    ),
    Order(
        reasoning="Wants a quote for 12 licences.",
        team="sales",
        urgent=False,
        count=10,
        score=1.0,
        tags=[],
        address=OFFICE,
        price=-0.5,
        items=[],
    ),
    Person(name="Ada Lovelace", age=36, email="ada@example.org", notes=["first programmer"]),
    Person(name="Łukasz Żółć", age=7),
    Call(
        thought="The user asks about the weather in São Paulo, so no search is needed.",
        call=Weather(tool="weather", city="São Paulo", unit="celsius"),
    ),
    Call(
        thought="I should look this up.",
        call=Search(tool="search", query="XGrammar vs llguidance mask latency", limit=20),
    ),
)
