"""Times as text."""


def seconds(value: float) -> str:
    """A time with three digits.

    >>> seconds(2.188), seconds(0.0873), seconds(6.5e-6)
    ('2.19 s', '87.3 ms', '6.50 µs')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale or unit == "µs":
            number = value / scale
            return f"{number:.{max(0, 2 - len(str(int(number))) + 1)}f} {unit}"
    raise AssertionError
