"""Memory that kernels access: lookups, requests, and what blocks on several cores share."""
