"""The order of the site's pages: sections of the sidebar, each with its pages.

A page is named by the file that it is made from, or as `site:NAME` if `docs/site_pages` makes it.
"""

SECTIONS = {
    "Learn": [
        "site:start",
        "docs/course/README.md",
        "docs/hopper/README.md",
        "docs/lessons/README.md",
        "docs/kernels.md",
        "docs/nvfp4.md",
        "site:gallery/index",
        "evidence/bench/README.md",
    ],
    "Run and test": [
        "docs/emulator.md",
        "docs/three-ways.md",
        "docs/pytest.md",
        "docs/ci.md",
        "docs/cuda.md",
        "docs/programs.md",
        "docs/frameworks.md",
        "docs/functions.md",
        "docs/textures.md",
        "docs/author.md",
        "docs/own-kernel.md",
        "docs/schedule.md",
    ],
    "See and debug": [
        "docs/lab.md",
        "docs/debug.md",
        "docs/trace.md",
        "docs/timelines.md",
        "docs/equal.md",
        "docs/verify.md",
        "docs/prove.md",
        "docs/estimate.md",
        "docs/draw.md",
        "docs/editors.md",
        "docs/agents.md",
    ],
    "Reference": [
        "site:diagnostics/index",
        "site:commands",
        "site:python",
        "site:instructions/index",
        "site:coverage",
        "docs/node.md",
        "docs/memory-model.md",
        "docs/litmus.md",
        "docs/glossary.md",
    ],
    "Findings": ["docs/claims.md", "site:techniques", "site:launches", "site:sanitizer"],
    "Take part": [
        "CONTRIBUTING.md",
        "docs/versioning.md",
        "SECURITY.md",
        "docs/add-an-instruction.md",
        "docs/native.md",
        "site:changes",
    ],
}
FOLDERS = {"docs/course": "course", "docs/hopper": "hopper", "docs/lessons": "lessons"}
"""Folders whose README lists the pages beside it, and what they are on the site."""
