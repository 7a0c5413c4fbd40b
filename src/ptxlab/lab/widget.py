"""The page in a notebook: the same page in a frame, whose questions Python answers. Needs `ptxlab[notebook]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anywidget
import traitlets

from ptxlab.lab.page import page
from ptxlab.lab.ranks import NodeViews
from ptxlab.lab.views import Views

if TYPE_CHECKING:
    from ptxlab.trace import Trace, Traces


class Lab(anywidget.AnyWidget):  # type: ignore[misc]
    """A recorded launch, or several that ran at the same time, in Jupyter, VS Code or Colab.

    result = kernel.launch(1, 32, [x], record=ptxlab.Record())
    Lab(result.trace)
    """

    _esm = Path(__file__).with_name("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(720).tag(sync=True)

    def __init__(self, trace: Trace | Traces, height: int = 720) -> None:
        from ptxlab.trace import Trace

        self._views = Views(trace) if isinstance(trace, Trace) else NodeViews(trace)
        super().__init__(page=page(asks_parent=True, of_node=isinstance(self._views, NodeViews)), height=height)
        self.on_msg(self._answer)

    def _answer(self, widget: object, content: dict[str, object], buffers: object) -> None:
        """Answer what the page asks for."""
        name = str(content.get("name", ""))
        try:
            self.send({"name": name, "found": self._views.get(name)})
        except KeyError as unknown:
            self.send({"name": name, "problem": f"there is no {unknown.args[0]}"})
