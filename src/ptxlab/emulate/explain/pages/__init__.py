"""The pages that `ptxlab explain` shows for what goes wrong when a kernel runs: one file each, named by its code.

A page says in a sentence what is wrong, then why and what to do. Its examples start with the options with which
`ptxlab run` shows the finding, and shows none for the right one.
"""

from importlib.resources import files


def pages() -> dict[str, str]:
    """The page of each finding, by its code."""
    found = sorted(files(__name__).iterdir(), key=lambda entry: entry.name)
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8").strip()
        for entry in found
        if entry.name.endswith(".md")
    }
