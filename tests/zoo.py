"""Schemas of every kind that structgen supports, by name."""

# ruff: noqa: UP007, UP045  # users write types in the older spellings too

from __future__ import annotations

import enum
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    TypeAdapter,
    create_model,
    field_validator,
    model_validator,
)

T = TypeVar("T")


class Mixed(enum.Enum):
    text = "red"
    number = 2
    half = 0.5
    nothing = None
    yes = True


class Level(enum.IntEnum):
    low = 1
    middle = 12
    high = 123


class Team(enum.StrEnum):
    sales = "sales"
    sales_eu = "sales eu"
    quoted = 'say "hi"\n'


class Empty(BaseModel):
    pass


class Address(BaseModel):
    street: str = Field(max_length=12)
    zip: Annotated[str, StringConstraints(min_length=5, max_length=5)]
    country: Literal["de", "dk", "at"] = "de"


class Person(BaseModel):
    name: str = Field(min_length=1, max_length=8)
    age: int = Field(ge=0, lt=150)
    address: Address
    others: list[Address] = Field(default_factory=list, max_length=2)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = Field(9, ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Bird(BaseModel):
    kind: Literal["bird", "birdie"] = "bird"
    sings: bool


Pet = Annotated[Cat | Dog | Bird, Field(discriminator="kind")]


class Owner(BaseModel):
    pet: Pet
    more: list[Pet] = []


class TwoPets(BaseModel):
    first: Pet
    second: Pet
    cat: Cat


class SameA(BaseModel):
    name: str
    value: int


class SameB(BaseModel):
    name: str
    value: str
    extra: bool = True


class SameC(BaseModel):
    name: str
    valuable: None


class Tree(BaseModel):
    label: Literal["x", "y"]
    children: list[Tree] = []


class Even(BaseModel):
    value: int
    odd: Odd | None = None


class Odd(BaseModel):
    even: Even
    more: dict[str, Even] = {}


class Expression(RootModel[Union[int, "Sum", "Product"]]):
    pass


class Sum(BaseModel):
    add: list[Expression] = Field(min_length=2, max_length=3)


class Product(BaseModel):
    multiply: list[Expression] = Field(min_length=1)


class Aliased(BaseModel):
    first: int = Field(alias="First Name")
    second: str = Field("x", validation_alias="2nd", max_length=3)
    third: bool = Field(validation_alias=AliasChoices("third!", "3rd"))


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    value: int = Field(alias="other")


class Defaults(BaseModel):
    a: int = 1
    b: str = Field("b", max_length=2)
    c: list[int] = Field(default_factory=list)
    d: float | None = None


class OneDefault(BaseModel):
    a: int
    b: int = 2
    c: int


class Allow(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int
    knowledge: str = "x"


class AllowTyped(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    id: int = 0
    idea: bool = False


class AllowOnly(BaseModel):
    model_config = ConfigDict(extra="allow")


class Forbid(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Ignore(BaseModel):
    model_config = ConfigDict(extra="ignore")
    a: int = 0


class Box(BaseModel, Generic[T]):
    content: T
    count: int = Field(1, gt=0)


class Matrix(RootModel[list[list[int]]]):
    pass


class Checked(BaseModel):
    low: int
    high: int

    @field_validator("low")
    @classmethod
    def keep(cls, value: int) -> int:
        return value

    @model_validator(mode="after")
    def never_fails(self) -> Checked:
        return self


class Configured(BaseModel):
    model_config = ConfigDict(str_max_length=4, str_min_length=1)
    text: str
    longer: Annotated[str, Field(max_length=9)]
    keys: dict[str, int] = {}


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    a: int
    b: float
    c: bool
    d: Team
    e: list[str]


class Prefixes(BaseModel):
    a: int
    ab: int = 0
    abc: int = 0
    abd: int
    b: int = 0


Weird = create_model(
    "Weird",
    a=(int, Field(alias="")),
    b=(int, Field(1, alias='"')),
    c=(int, Field(1, alias="\\n")),
    d=(int, Field(1, alias="\n\t\x01")),
    e=(int, Field(1, alias="ключ")),
    f=(int, Field(1, alias="\U0001f600\U0001f601")),
    g=(int, Field(1, alias="\U0001f600")),
    h=(int, Field(1, alias="}, {")),
    i=(int, Field(alias=" ")),
)
ManyOptional = create_model(
    "ManyOptional", **{f"f{i}": (Literal["on", "off"], "on") for i in range(30)}
)
Alternating = create_model(
    "Alternating",
    **{f"f{i}": (bool, True) if i % 2 else (bool, ...) for i in range(8)},
)

ZOO: dict[str, Any] = {
    "str": str,
    "bounded str": Annotated[str, Field(min_length=2, max_length=5)],
    "exact str": Annotated[str, Field(min_length=3, max_length=3)],
    "empty str": Annotated[str, Field(max_length=0)],
    "long str": Annotated[str, Field(min_length=40, max_length=3000)],
    "int": int,
    "bounded int": Annotated[int, Field(ge=-17, le=1234)],
    "one-sided int": Annotated[int, Field(gt=99)],
    "huge int": Annotated[int, Field(ge=10**25, lt=10**26)],
    "negative int": Annotated[int, Field(lt=-7)],
    "float": float,
    "fraction": Annotated[float, Field(ge=0, le=1)],
    "open float": Annotated[float, Field(gt=-0.1, lt=1e-6)],
    "bool": bool,
    "null": None,
    "literal texts": TypeAdapter(
        Literal["a", "ab", "abc", 'q"', "\n", "é", "\U0001f600", "", "\\", "a/b"]
    ),
    "literal mixed": TypeAdapter(Literal[1, 12, 123, -1, True, None, "1"]),
    "enum": TypeAdapter(Mixed),
    "int enum": TypeAdapter(Level),
    "str enum": TypeAdapter(Team),
    "optional": Optional[Annotated[str, Field(max_length=3)]],
    "union": Union[int, Annotated[str, Field(max_length=4)], bool, list[bool], None],
    "int or float": Union[int, float],
    "same prefix": Union[SameA, SameB, SameC],
    "ambiguous lists": Union[list[int], list[int | str], list[list[int]]],
    "tagged": TypeAdapter(Pet),
    "tagged field": Owner,
    "tagged twice": TwoPets,
    "nested": Person,
    "tree": Tree,
    "mutual recursion": Even,
    "recursive root": Expression,
    "list": list[int],
    "bounded list": Annotated[
        list[Annotated[int, Field(ge=0, le=99)]], Field(min_length=2, max_length=4)
    ],
    "exact list": Annotated[list[bool], Field(min_length=3, max_length=3)],
    "empty list": Annotated[list[int], Field(max_length=0)],
    "lists of lists": Annotated[
        list[Annotated[list[Annotated[list[int], Field(min_length=1)]], Field(min_length=2)]],
        Field(min_length=1, max_length=3),
    ],
    "dict": dict[str, int],
    "dict of models": dict[Annotated[str, Field(min_length=1, max_length=3)], Address],
    "dict of any": dict[str, Any],
    "aliases": Aliased,
    "by name": ByName,
    "defaults": Defaults,
    "one default": OneDefault,
    "extra": Allow,
    "extra typed": AllowTyped,
    "extra only": AllowOnly,
    "forbid": Forbid,
    "ignore": Ignore,
    "generic": Box[list[Annotated[str, Field(max_length=2)]]],
    "generic model": Box[Address],
    "root model": Matrix,
    "any": Any,
    "list of any": list,
    "object": object,
    "adapter": TypeAdapter(list[Cat | int]),
    "validators": Checked,
    "after validator": Annotated[int, AfterValidator(abs)],
    "configured": Configured,
    "strict": Strict,
    "empty model": Empty,
    "list of empty models": list[Empty],
    "all optional": ManyOptional,
    "alternating": Alternating,
    "prefixes": Prefixes,
    "weird keys": Weird,
}
