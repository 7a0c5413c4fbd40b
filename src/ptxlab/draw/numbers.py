"""Numbers of lanes and blocks, as the cells of a picture have them."""

from __future__ import annotations


def listed(numbers: list[int]) -> str:
    """`3`, `0-7`, or `0,4,8`; of many apart the first and how many.

    >>> listed([0, 1, 2, 3]), listed([0, 4, 8]), listed([0, 4, 8, 12])
    ('0-3', '0,4,8', '0+3')
    """
    if len(numbers) == 1:
        return str(numbers[0])
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(map(str, numbers)) if len(numbers) <= 3 else f"{numbers[0]}+{len(numbers) - 1}"
