"""Turn free text into a nested object whose numbers and choices are within their bounds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

import structgen as sg

TEXT = """Hi Ana, please order 3 desk lamps at 24.50 euros each and 12 notebooks at 2.20 euros each
for the Lisbon office. Thanks, Rui"""


class Item(BaseModel):
    name: str = Field(min_length=1, max_length=30)
    quantity: int = Field(ge=1, le=999)
    unit_price: float = Field(ge=0, le=10_000)


@sg.structured
class Order(BaseModel):
    """An order for office supplies."""

    items: list[Item] = Field(min_length=1, max_length=4)
    currency: Literal["EUR", "USD", "GBP"]
    office: Annotated[str, Field(max_length=20)] | None = None


def main() -> None:
    order = sg.generate(
        Order,
        f"Extract the order from this message.\n\n{TEXT}",
        max_new_tokens=160,
        require_all=True,
    )
    for item in order.items:
        print(f"{item.quantity} x {item.name} at {item.unit_price} {order.currency}")
    print(f"for {order.office}")


if __name__ == "__main__":
    main()
