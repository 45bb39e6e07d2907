"""Mixers of a plan file's section `model`: what they mean, and the checks of the keys `mixer` and `pattern`."""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.files.plans.model_schema import MixerSection, ModelSection, ParallelSection
from pipesched.files.schema_errors import shown
from pipesched.layers.derived.mixer import Mixing
from pipesched.layers.derived.mixer_kinds import SOME_HAVE, MixerSizes, kinds_with, mixer_of, usual_chunk
from pipesched.layers.derived.shape import LETTERS

# Kinds that a letter of a pattern may stand for.
_OF_LETTER = {"M": ("mamba2", "mamba1"), "G": ("gated_delta",)}
_MAMBA1, _ONE_SIZE = "mamba1", ("kimi_delta", "lightning")


def mixing_of(section: MixerSection, hidden: int, layers: int) -> Mixing:
    """Return the mixer of a valid section, and the layers, numbered from 0, that have attention in its place.

    `hidden` is the hidden size of the model, `layers` its number of transformer layers.
    """
    assert section.kind and section.heads and section.key_size
    own = section.kind == _MAMBA1
    value = section.value_size or (1 if own else section.key_size)
    sizes = MixerSizes(
        hidden, section.heads, key_heads_of(section), section.key_size, value, section.convolution,
        section.chunk or usual_chunk(section.kind), section.rank or value, section.normalized,
    )  # fmt: skip
    given = section.attention_layers
    listed = given if isinstance(given, list) else [] if given is None else range(given - 1, layers, given)
    return Mixing(mixer_of(section.kind, sizes), frozenset(listed), section.parallel)


def key_heads_of(section: MixerSection) -> int:
    """Return the heads of keys of a section, as many as its heads if it does not say.

    One of Mamba 1, whose channels share B and C.
    """
    return 1 if section.kind == _MAMBA1 else section.key_heads or section.heads or 1


def mixing_mistakes(model: ModelSection) -> Iterator[str]:
    """Yield a line for each broken rule of the keys `mixer` and `pattern`."""
    mixer, place = model.mixer, "model.mixer"
    if mixer is not None:
        yield from mixer.missing(place)
        yield from _heads(mixer)
        yield from _of_other_kinds(mixer)
        yield from _places(model, mixer)
    if model.pattern is not None:
        yield from _pattern(model, model.pattern)


def _heads(mixer: MixerSection) -> Iterator[str]:
    heads, keys = mixer.heads, mixer.key_heads
    if mixer.kind == _MAMBA1 and mixer.rank is None:
        yield "model.mixer.rank: missing; it is required with mamba1"
    if mixer.kind == _MAMBA1 and (keys or 1) > 1:
        yield f"model.mixer.key_heads: found {keys} with mamba1; allowed: 1"
    elif heads and keys and heads % keys:
        yield f"model.mixer.key_heads: found {keys}; allowed: a divisor of heads {heads}"
    elif mixer.kind in _ONE_SIZE and heads and keys and keys != heads:
        yield f"model.mixer.key_heads: found {keys} with {mixer.kind}; allowed: as many as heads, {heads}"


def _of_other_kinds(mixer: MixerSection) -> Iterator[str]:
    """Yield a line for each key that says of a mixer what its kind does not have, and that would change nothing."""
    for key, absent in SOME_HAVE.items():
        value, kinds = getattr(mixer, key), kinds_with(key)
        if mixer.kind and mixer.kind not in kinds and key in mixer.model_fields_set and value not in (None, absent):
            found = str(value).lower() if isinstance(value, bool) else value
            yield f"model.mixer.{key}: found {found} with {mixer.kind}; allowed: without, or with {' or '.join(kinds)}"


def _places(model: ModelSection, mixer: MixerSection) -> Iterator[str]:
    """Yield mistakes of the keys that say which layers have the mixer."""
    given, place = mixer.attention_layers, "model.mixer.attention_layers"
    if given is not None and mixer.parallel:
        yield f"{place}: found with parallel; allowed: without, as all layers have attention"
    if model.pattern is not None:
        for key, found in (("attention_layers", given is not None), ("parallel", mixer.parallel)):
            if found:
                yield f"model.mixer.{key}: found with pattern; allowed: without, as its letters say it"
    elif given == 0:
        yield f"{place}: found 0; allowed: a whole number of at least 1, or a list of layers"
    elif isinstance(given, list) and model.layers and max(given) >= model.layers:
        last = model.layers - 1
        yield f"{place}: found layer {max(given)}; allowed: up to {last}, the last of the {model.layers} layers"
    elif isinstance(given, list) and len({*given}) < len(given):
        twice = next(one for one in given if given.count(one) > 1)
        yield f"{place}: found layer {twice} twice; allowed: each layer once"


def _pattern(model: ModelSection, pattern: str) -> Iterator[str]:
    place = "model.pattern"
    strange = next((one for one in pattern if one not in LETTERS), None)
    if strange is not None:
        yield f"{place}: found {shown(strange)}; allowed: the letters {' '.join(LETTERS)}"
    if model.layers and len(pattern) != model.layers:
        yield f"{place}: found {len(pattern)} letters; allowed: one for each of the {model.layers} layers"
    kind = None if model.mixer is None else model.mixer.kind
    for letter, kinds in _OF_LETTER.items():
        if letter in pattern and kind not in kinds:
            yield f"{place}: found {letter} without a mixer of its kind; allowed: with model.mixer {' or '.join(kinds)}"
    if model.mixer is not None and not set(pattern) & set(_OF_LETTER):
        yield f"{place}: found a mixer and no M or G; allowed: a pattern with its letter, or no mixer"
    if "E" in pattern and model.experts is None:
        yield f"{place}: found E without experts; allowed: with experts"
    if "E" not in pattern and model.experts is not None and not model.mtp_layers:
        yield "model.experts: found with a pattern without E; allowed: with E or mtp_layers, else without"
    has_blocks = "-" in pattern or (model.mtp_layers > 0 and model.experts is None)
    if has_blocks and model.ffn is None:
        yield "model.ffn: missing; it is required with - in the pattern, or with mtp_layers without experts"
    if model.ffn is not None and not has_blocks:
        yield "model.ffn: found with a pattern without -; allowed: without, or with - or mtp_layers without experts"
    for key, usual in (("dense_layers", None), ("experts_every", 1)):
        if getattr(model, key) != usual:
            yield f"model.{key}: found with pattern; allowed: without, as its letters say it"


def mixing_sizes(model: ModelSection, parallel: ParallelSection) -> Iterator[str]:
    """Yield at most one line: on sizes of parallelism that do not divide a mixer's heads, or else its heads of keys."""
    mixer = model.mixer
    if mixer is None or not mixer.heads:
        return
    keys, both = key_heads_of(mixer), parallel.tensor * parallel.context
    if mixer.heads % both:
        found = f"model.parallel.tensor: found tensor * context {both}"
        yield f"{found}; allowed: a divisor of the mixer's {mixer.heads} heads"
    elif mixer.kind != _MAMBA1 and keys % parallel.tensor:
        found = f"model.parallel.tensor: found {parallel.tensor}"
        yield f"{found}; allowed: a divisor of the mixer's {keys} heads of keys"
