"""Several GPUs without a GPU: devices with memory of their own in one address space, streams, events and copies.

`node` makes them, `arrays` has their memory, `streams` what runs on them, and `operations` what is launched.
"""

from ptxlab.node.arrays import Array
from ptxlab.node.machine import Device, Node, node
from ptxlab.node.streams import Event, Stream

__all__ = ["Array", "Device", "Event", "Node", "Stream", "node"]
