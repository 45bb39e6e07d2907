"""The JSON schemas of files, applied as an editor applies them; each schema is itself checked once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import simplejson
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from pipesched.files.problems.schema import json_schema

Schema = Callable[[], Mapping[str, Any]]


def accepts(document: object, schema: Schema = json_schema) -> bool:
    """Return True if a file of this content satisfies the schema, that of problem files unless another is given."""
    return _validator(schema).is_valid(json.loads(simplejson.dumps(document, use_decimal=True)))


@cache
def _validator(schema: Schema) -> Validator:
    kind = validator_for(schema())
    kind.check_schema(schema())
    return kind(schema())
