"""Codes that had another spelling: it is accepted wherever a user names a code."""

_RENAMED = {"reinitialised-mbarrier": "reinitialized-mbarrier", "uninitialised-read": "uninitialized-read"}


def current_code(code: str) -> str:
    """The code as it is spelled today.

    >>> current_code("uninitialised-read")
    'uninitialized-read'
    """
    return _RENAMED.get(code, code)
