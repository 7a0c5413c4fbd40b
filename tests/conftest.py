"""What holds for all tests."""

import signal

from hypothesis import HealthCheck, settings

# How fast a busy machine thinks of examples is nothing that a test is about.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A shell starts what is to run in the background with Ctrl-C ignored, and so would be what tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
