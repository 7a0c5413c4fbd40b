"""Steps of every build: the types of `ptxlab.author.ptx` for editors, and the guides."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Stubs(BuildHookInterface):  # type: ignore[type-arg]
    """Writes `instructions.pyi` into the package, and adds the guides."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write it; the table needs nothing but Python."""
        source = Path(self.root) / "src"
        sys.path.insert(0, str(source))
        from ptxlab.author.stubs import stubs

        (source / "ptxlab" / "author" / "instructions.pyi").write_text(stubs(), encoding="utf-8")
        if version != "editable":  # from a repository they are read where they are
            docs = Path(self.root) / "docs"
            pages = ["course", "lessons", "hopper", *(file.name for file in docs.glob("*.md"))]
            build_data["force_include"].update({f"docs/{one}": f"ptxlab/docs/{one}" for one in pages})
