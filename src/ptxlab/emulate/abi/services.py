"""The functions that a kernel can call without a body: the host carries them out."""

SERVICES = {"vprintf": 2, "malloc": 1, "free": 1, "__assertfail": 5}  # with the number of their arguments
FLUSH = len(SERVICES)  # what the runtime asks for itself: take what is in the buffers of a recording
