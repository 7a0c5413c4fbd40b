"""Several GPUs without a GPU: devices with memory of their own in one address space, streams, events and copies.

`node` makes them, `arrays` has their memory, `streams` what runs on them, `graphs` what is captured to run often, and
`operations` what is launched.
"""

from ptxlab.node.arrays import Array
from ptxlab.node.graphs import Graph
from ptxlab.node.machine import Device, Node, node
from ptxlab.node.streams import Event, Stream

__all__ = ["Array", "Device", "Event", "Graph", "Node", "Stream", "node"]
