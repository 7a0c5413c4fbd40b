"""What messages of editors have in common: sessions as JSON, changed, and as the bytes that are sent."""

import json
import random
from typing import Any

from tests.fuzz.inputs.mutation import change_bytes, change_value


def changed(session: list[Any], choose: random.Random) -> bytes:
    """A session some of whose messages are changed, left out or repeated, as JSON."""
    messages = list(session)
    for _ in range(choose.choice([1, 1, 2, 4])):
        at = choose.randrange(len(messages))
        if choose.random() < 0.85:
            messages[at] = change_value(messages[at], choose)
        else:
            messages[at : at + 1] = choose.choice([[], [messages[at]] * 2, [choose.choice(session)]])
        messages = messages or list(session)
    return json.dumps(messages).encode()


def sent(data: bytes, choose: random.Random) -> bytes:
    """A session as it goes over the wire, now and then damaged there."""
    wire = b""
    for message in json.loads(data):
        body = json.dumps(message).encode()
        wire += b"Content-Length: %d\r\n\r\n" % len(body) + body
    return change_bytes(wire, choose) if choose.random() < 0.05 else wire
