"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# How fast a busy machine thinks of examples is nothing that a test is about.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
