"""A dozen Pydantic models as people write them, one for each thing that schemas are made of, with
values that the benchmarks write token by token.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from structgen.errors import VocabularyError
from structgen.tokens.vocabulary import Vocabulary


class Closed(BaseModel):
    """Undeclared keys are forbidden, so that every engine enforces the same objects."""

    model_config = ConfigDict(extra="forbid")


class Contact(Closed):
    """Flat: strings, numbers, a flag."""

    name: str
    company: str
    age: int
    score: float
    subscribed: bool


class Triage(Closed):
    """Reasoning, then the answer."""

    reasoning: str = Field(max_length=400)
    team: Literal["billing", "technical", "sales"]
    urgent: bool


class Place(Closed):
    latitude: float
    longitude: float


class Address(Closed):
    street: str
    city: str
    zip_code: str
    country: Literal["de", "fr", "gb", "us"]
    place: Place


class Customer(Closed):
    """Nested: objects in objects."""

    name: str
    billing: Address
    shipping: Address


class Line(Closed):
    product: str
    quantity: int
    price: float


class Invoice(Closed):
    """Lists: of objects and of texts."""

    number: str
    lines: list[Line]
    remarks: list[str]


class Profile(Closed):
    """Optional: fields that may be null or left out."""

    name: str
    email: str | None = None
    phone: str | None = None
    age: int | None = None
    active: bool = True
    tags: list[str] = Field(default_factory=list)


class Search(Closed):
    tool: Literal["search"]
    query: str
    limit: int = Field(ge=1, le=100)


class Weather(Closed):
    tool: Literal["weather"]
    city: str
    unit: Literal["celsius", "fahrenheit"]


class Mail(Closed):
    tool: Literal["mail"]
    to: list[str]
    subject: str
    body: str


class ToolCall(Closed):
    """A union of tools, told apart by a tag."""

    thought: str = Field(max_length=200)
    call: Annotated[Search | Weather | Mail, Field(discriminator="tool")]


class Section(Closed):
    """Recursive."""

    title: str
    text: str | None = None
    children: list[Section] = Field(default_factory=list)


class Product(Closed):
    """Bounded strings."""

    sku: str = Field(min_length=4, max_length=12)
    title: str = Field(max_length=80)
    summary: str = Field(min_length=10, max_length=300)
    keywords: list[Annotated[str, Field(max_length=20)]] = Field(max_length=8)


class Booking(Closed):
    """Formats."""

    id: uuid.UUID
    day: dt.date
    starts: dt.time
    created: dt.datetime


AREAS = ("sales", "support", "billing", "legal", "research", "design", "logistics", "security")
CODES = tuple(f"{area}/{number:03}" for area in AREAS for number in range(1, 26))
"""200 labels."""


class Ticket(Closed):
    """A choice among 200 labels."""

    summary: str = Field(max_length=120)
    code: Literal[CODES]  # pyright: ignore[reportInvalidTypeForm]
    confident: bool


class Survey(Closed):
    """A dictionary."""

    respondent: str
    answers: dict[str, str]
    scores: dict[str, int]


class Measurement(Closed):
    """Numbers and lists within bounds."""

    sensor: int = Field(ge=1, le=4096)
    temperature: float = Field(ge=-40, le=125)
    humidity: float = Field(ge=0, le=1)
    readings: list[Annotated[int, Field(ge=0, le=1023)]] = Field(min_length=1, max_length=16)


MODELS: tuple[type[Closed], ...] = (
    Contact, Triage, Customer, Invoice, Profile, ToolCall, Section, Product, Booking, Ticket,
    Survey, Measurement,
)  # fmt: skip

_HOME = {"latitude": 52.4994, "longitude": 13.3917}
_ADDRESS = {
    "street": "Lindenstraße 12", "city": "Berlin", "zip_code": "10969", "country": "de",
    "place": _HOME,
}  # fmt: skip

_JSON: dict[type[Closed], tuple[dict[str, Any], ...]] = {
    Contact: (
        {"name": "Ada Lovelace", "company": "Analytical Engines Ltd.", "age": 36, "score": 9.75,
         "subscribed": True},
        {"name": "Łukasz Żółć", "company": "Żubr S.A.", "age": 7, "score": -0.5,
         "subscribed": False},
    ),
    Triage: (
        {"reasoning": "The customer says that the card was charged twice for order 48213, so "
         "billing has to look at the payment, and the tone is angry but polite.",
         "team": "billing", "urgent": True},
    ),
    Customer: (
        {"name": "Grace Hopper", "billing": _ADDRESS,
         "shipping": {**_ADDRESS, "street": "1600 Pennsylvania Avenue NW", "country": "us"}},
    ),
    Invoice: (
        {"number": "2024-00317", "lines": [
            {"product": "Desk lamp, brass", "quantity": 2, "price": 49.9},
            {"product": "Bulb E27", "quantity": 10, "price": 3.25},
         ], "remarks": ['Deliver to the "back" door.', "Payable within 14 days"]},
    ),
    Profile: (
        {"name": "Alan Turing", "email": "alan@example.org", "phone": None, "age": 41,
         "active": False, "tags": ["mathematics", "running"]},
        {"name": "Noether"},
    ),
    ToolCall: (
        {"thought": "The user asks about the weather in São Paulo, so no search is needed.",
         "call": {"tool": "weather", "city": "São Paulo", "unit": "celsius"}},
        {"thought": "I should look this up.",
         "call": {"tool": "search", "query": "mask latency of grammar engines", "limit": 20}},
        {"thought": "", "call": {"tool": "mail", "to": ["ops@example.org", "cto@example.org"],
         "subject": "Outage", "body": "The queue is stuck.\nPlease restart the worker."}},
    ),
    Section: (
        {"title": "Engine", "text": "How masks are made", "children": [
            {"title": "Frames", "text": None, "children": []},
            {"title": "Kernels", "children": [{"title": "Walks"}]},
        ]},
    ),
    Product: (
        {"sku": "LMP-4471", "title": "Desk lamp, brass",
         "summary": "A heavy lamp with a linen shade; the arm moves in three joints.",
         "keywords": ["lamp", "brass", "home office"]},
    ),
    Booking: (
        {"id": "1f0e3dad-9990-4345-b743-9f8ffabdffc4", "day": "2025-02-28", "starts": "14:30:00Z",
         "created": "2025-01-31T08:15:00Z"},
    ),
    Ticket: (
        {"summary": "Cannot log in after the password was reset", "code": "security/017",
         "confident": False},
    ),
    Survey: (
        {"respondent": "R-118", "answers": {"favourite colour": "green", "city": "Kraków"},
         "scores": {"food": 4, "service": 5}},
    ),
    Measurement: (
        {"sensor": 1031, "temperature": -12.5, "humidity": 0.35, "readings": [0, 512, 1023, 77]},
    ),
}  # fmt: skip


def texts() -> list[tuple[type[Closed], str]]:
    """(model, JSON text of one of its values), in the default layout, at least one a model.

    Example: `(Triage, '{"reasoning": "...", "team": "billing", "urgent": true}')`
    """
    return [
        (model, json.dumps(value, ensure_ascii=False)) for model in MODELS for value in _JSON[model]
    ]


def token_walks(vocabulary: Vocabulary) -> dict[str, list[list[int]]]:
    """The tokens of the values of each model, by its name, as the tokenizer itself writes them.

    Raises:
        VocabularyError: the tokenizer cannot write text, for instance one made `from_bytes`.
    """
    if vocabulary.encode is None:
        raise VocabularyError(
            "the benchmark writes values with the tokenizer, which has no encoder"
        )
    walks: dict[str, list[list[int]]] = {model.__name__: [] for model in MODELS}
    for model, text in texts():
        walks[model.__name__].append(vocabulary.encode(text))
    return walks
