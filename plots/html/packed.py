"""A document as short text for a page: JSON, compressed, in letters that HTML gives no meaning to."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any


def packed(document: Any) -> str:
    """Read by `unpacked` in `page/unpack.js`; the same document gives the same text."""
    data = json.dumps(document, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
