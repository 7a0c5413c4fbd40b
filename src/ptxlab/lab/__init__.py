"""The page in the browser over a recorded launch: `ptxlab lab`.

`warp_steps.py` has the launch as its warps execute it; on it are the views, one file each, such as `registers.py` and
`memory.py`; `views.py` gives each answer its name, `ranks.py` those of several launches with one clock; `server.py`
serves them, `embedded.py` writes them into a file. The page itself is in `page/`: modules in JavaScript without a
framework. `docs/lab.md` describes how they fit together.
"""

from ptxlab.lab.embedded import TooLargeError, write_page, write_pair
from ptxlab.lab.ranks import NodeViews
from ptxlab.lab.server import Server
from ptxlab.lab.views import Views

__all__ = ["NodeViews", "Server", "TooLargeError", "Views", "write_page", "write_pair"]
