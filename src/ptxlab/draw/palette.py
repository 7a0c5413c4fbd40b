"""Colors for the 32 lanes of a warp, or the 32 banks: eight hues, and four shades of each for those side by side."""

from __future__ import annotations

from colorsys import hls_to_rgb
from functools import cache

HUES = (212, 28, 130, 352, 268, 52, 180, 310)  # degrees; neighbours are far apart
SHADES = (0.88, 0.80, 0.72, 0.64)


def rgb(color: int) -> tuple[int, int, int]:
    """A color by its number, from 0 to 31, as red, green and blue to 255."""
    hue, shade = divmod(color % 32, 4)
    red, green, blue = hls_to_rgb(HUES[hue] / 360, SHADES[shade], 0.62)
    return round(red * 255), round(green * 255), round(blue * 255)


def apart(number: int) -> int:
    """The number of a color, so that consecutive numbers have different hues."""
    return number % len(HUES) * len(SHADES) + number // len(HUES) % len(SHADES)


@cache
def web(color: int) -> str:
    """As SVG writes it."""
    return "#{:02x}{:02x}{:02x}".format(*rgb(color))
