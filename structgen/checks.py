"""Options of a generator and of its calls, each refused where it is out of its range."""

from __future__ import annotations

from collections.abc import Iterable

from structgen.errors import OptionError
from structgen.runtime.sampling import Sampling


def check_max_new_tokens(value: object) -> int:
    """A token budget, refused unless it is a whole number above 0."""
    return check_count("max_new_tokens", value)


def check_count(name: str, value: object) -> int:
    """A number of things, refused unless it is a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionError(f"{name}={value!r} must be a whole number above 0")
    return value


def check_beams(num_beams: object, sampling: Sampling) -> int:
    """A number of beams, refused where their search would not be one."""
    beams = check_count("num_beams", num_beams)
    if beams > 1 and sampling.do_sample:
        raise OptionError(
            f"num_beams={beams} searches for the most probable value and do_sample=True draws one; "
            "use one of them"
        )
    return beams


def check_prompts(prompts: object) -> None:
    """Refuse one prompt where many are asked for."""
    if isinstance(prompts, str | bytes) or not isinstance(prompts, Iterable):
        raise OptionError(
            f"prompts must be a list or an iterator of prompts, got {type(prompts).__name__}; "
            "for one prompt call the generator itself"
        )


def check_retries(retries: object, sampling: Sampling, num_beams: int) -> int:
    """A number of retries, refused where some could only repeat an earlier attempt."""
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise OptionError(f"retries={retries!r} must be a whole number from 0 up")
    if retries and sampling.top_k == 1:
        raise OptionError(
            f"retries={retries} with top_k=1 would write the same value again; leave top_k out"
        )
    if 1 < num_beams <= retries:
        raise OptionError(
            f"retries={retries} must be less than num_beams={num_beams}: the search finds so many "
            "values, and the best one is no retry"
        )
    return retries
