"""The memory of a worker before anything of an engine is loaded; imported before all others."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel

from structgen.bench.measure import resident_mib

SHARED = (np, BaseModel)
"""What the workload itself needs, whichever engine it is."""
BARE_MIB = resident_mib()
