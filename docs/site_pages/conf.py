"""Sphinx's settings; `python docs/build.py --site` makes the pages that it reads, and runs it."""

import re
from typing import Any

from ptxlab import __version__

project = "ptxlab"
copyright = "the authors of ptxlab, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "ptxlab.highlighting"]
source_suffix = {".md": "markdown"}
nitpicky = True
# Names of other packages are not pages here; ours are.
nitpick_ignore_regex = [(r"py:.*", r"(?!ptxlab\b).*"), (r"py:.*", r"ptxlab\.(?!\w+$).*")]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "attrs_inline"]
highlight_language = "none"

default_role = "code"  # docstrings are written for Markdown
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries = False

html_theme = "furo"
html_title = "ptxlab"
html_static_path = ["static"]
html_css_files = ["ptxlab.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"  # console output of others is grey on grey
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#3a6b00", "color-brand-content": "#3a6b00"},
    "dark_css_variables": {"color-brand-primary": "#9ad94a", "color-brand-content": "#9ad94a"},
    "navigation_with_keys": True,
}


def from_markdown(app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Docstrings as reStructuredText: they have code in single backticks, and tables as Markdown has them."""
    made: list[str] = []
    for line in lines:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not (made and made[-1].startswith("   ")):
                made += ["", ".. list-table::", "   :header-rows: 1", ""]
            if not set(line) <= set("|-: "):
                made += [f"   {' ' if at else '*'} - {as_text(cell)}" for at, cell in enumerate(cells)]
        else:
            made.append(as_text(line) if not line.startswith(("    ", ">>>")) else line)
    lines[:] = made


def as_text(line: str) -> str:
    """A line in which only code is markup."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(f"`{part}`" if part.startswith("`") else re.sub(r"([*|\\])", r"\\\1", part) for part in parts)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", from_markdown)
