"""What a release says of itself is the same everywhere."""

import json
import tomllib
from pathlib import Path

import ptxlab

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    manifest = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    assert f"\nversion: {ptxlab.__version__}\n" in citation
    assert manifest["version"] == ptxlab.__version__
    assert f"\n## {ptxlab.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_addresses_are_the_same_everywhere() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"repository-code: {urls['Homepage']}\n" in citation
    assert f"\nurl: {urls['Documentation']}\n" in citation
    assert f"repo: {urls['Homepage']}\n" in (ROOT / "docs" / "ci.md").read_text()
