"""Pictures of the gallery are what a launch of today does; `BLESS=1` writes them anew."""

import importlib.util
import os
from pathlib import Path

import pytest

from ptxlab import kernels

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("gallery_pictures", DOCS / "gallery_pictures.py")
assert spec is not None
assert spec.loader is not None
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)

OFTEN = ("sgemm", "transpose", "vector_addition", "wgmma_steps")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OFTEN else pytest.mark.bulk) for name in pictures.CASES]
)
def test_a_picture_shows_what_a_launch_does(name: str) -> None:
    file = pictures.FOLDER / f"{name}.svg"
    svg = pictures.picture(name).svg()
    if os.environ.get("BLESS"):
        file.write_text(svg, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == svg


def test_each_readme_shows_its_picture() -> None:
    assert sorted(pictures.CASES) == kernels.names()
    assert sorted(file.stem for file in pictures.FOLDER.glob("*.svg")) == kernels.names()
    for name in kernels.names():
        assert f"(../../../../docs/pictures/gallery/{name}.svg)" in kernels.readme(name)
