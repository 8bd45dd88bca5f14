"""Fixtures that several test modules share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True)
class PlainHandlers:
    """A handler set in plain NumPy: one in ten shares one of three keys, under disjoint conditions."""

    count: int
    keys: np.ndarray
    masks: np.ndarray
    values: np.ndarray
    order: np.ndarray

    def select(self, packets: np.ndarray) -> np.ndarray:
        found = np.full(len(packets), -1, np.int32)
        for i in self.order[::-1]:
            fits = (packets["payload"][:, 0] & self.masks[i]) == self.values[i]
            found[(packets["key"] == self.keys[i]) & fits] = i
        return found


@pytest.fixture(scope="session")
def plain_handlers() -> Callable[..., PlainHandlers]:
    def build(count: int = 100, first_key: int = 100, order: list[int] | None = None) -> PlainHandlers:
        keys = (np.arange(count) + first_key).astype(np.uint16)
        masks, values = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        residual = np.arange(7, count, 10)
        turn = np.arange(len(residual))
        keys[residual] = 60000 + turn % 3
        masks[residual] = 3 if count <= 100 else 0x3F
        values[residual] = turn // 3
        return PlainHandlers(count, keys, masks, values, np.array(order or range(count), np.int32))

    return build
