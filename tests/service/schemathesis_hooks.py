"""Tells schemathesis how JSON lines are sent: as the text they are."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def as_text(context, value):
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "replace")
