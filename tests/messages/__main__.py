"""Writes what the commands say now into the files that the tests hold it to: `python -m tests.messages`."""

from __future__ import annotations

from tests.messages.cases import TOPICS
from tests.messages.transcript import held, transcript

if __name__ == "__main__":
    for topic in TOPICS:
        held(topic).write_text(transcript(topic), encoding="utf-8")
