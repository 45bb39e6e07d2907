"""Compression of a document to short text for a page: JSON, gzip, base64."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any


def packed(document: Any) -> str:
    """Return a document as compressed text, which `unpacked` in `page/unpack.js` reads.

    Equal documents give equal text.
    """
    data = json.dumps(document, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
