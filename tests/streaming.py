"""Generators whose streams are looked at."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

import structgen as sg
from structgen.testing import FakeLM, RandomLM, small_vocabulary

WORDS = small_vocabulary(['{"', '":', " true", " false", "billing", "team", ", ", "</think>"])


class Triage(BaseModel):
    note: str = Field(max_length=8)
    team: Literal["billing", "technical", "sales"]
    tags: list[bool] = Field(max_length=2)


class Picky(BaseModel):
    n: int = Field(ge=0, le=9)

    @field_validator("n")
    @classmethod
    def even(cls, n):
        if n % 2:
            raise ValueError("odd")
        return n


class Watched(RandomLM):
    """Knows which of its caches are still remembered, and takes its time."""

    def __init__(self, seed: int = 0, delay_s: float = 0.0) -> None:
        super().__init__(WORDS, seed)
        self.delay_s = delay_s
        self.caches: list[weakref.ref[Any]] = []
        self.threads: set[threading.Thread] = set()
        self.running = 0

    def prefill(self, prompts):
        cache, logits = super().prefill(prompts)
        kept = type("Cache", (type(cache),), {})(cache.rows)
        self.caches.append(weakref.ref(kept))
        return kept, logits

    def extend(self, cache, chunks):
        self.running += 1
        self.threads.add(threading.current_thread())
        time.sleep(self.delay_s)
        logits = super().extend(cache, chunks)
        self.running -= 1
        return logits

    def remembered(self) -> int:
        return sum(cache() is not None for cache in self.caches)


def generator(lm: FakeLM | None = None, schema: Any = Triage, **options: Any) -> sg.Generator[Any]:
    return sg.Generator(schema, lm or RandomLM(WORDS, 4), **options)
