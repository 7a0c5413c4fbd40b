"""Numbers as the page reads them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt


def packed(values: npt.NDArray[Any] | bytes) -> str:
    """Bytes as text."""
    data = values if isinstance(values, bytes) else np.ascontiguousarray(values).tobytes()
    return base64.b64encode(data).decode()
