"""The wording of messages is held here alone: other tests assert fields. `python -m tests.messages` writes it anew."""

from __future__ import annotations

import pytest

from tests.messages.cases import TOPICS
from tests.messages.transcript import held, transcript


@pytest.mark.usefixtures("pictures_are_empty")
@pytest.mark.parametrize("topic", TOPICS)
def test_commands_say_what_is_held(topic: str) -> None:
    assert transcript(topic) == held(topic).read_text(encoding="utf-8"), (
        "if the change is meant: python -m tests.messages"
    )
