"""Reading of a model configuration from a file of any supported program."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, read_yaml
from pipesched.files.file_names import uncompressed
from pipesched.files.model_configs.hugging_face import from_hugging_face
from pipesched.files.model_configs.megatron_arguments import arguments_of, flattened, from_megatron, is_whole_job
from pipesched.files.model_configs.megatron_log import arguments_of_log, is_megatron_log
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.torchtitan import from_torchtitan
from pipesched.files.other_kinds import FileKind, refuse_other_kinds
from pipesched.files.text_file import read_text

KINDS = "config.json of Hugging Face, .yaml or .sh of Megatron's arguments, .log of Megatron, .toml of torchtitan"


def read_config(path: str, vocabulary: int | None = None) -> ModelConfig:
    """Return the model configuration in a file, or in the `config.json` of a folder.

    The file's ending, before .gz, decides the format. `vocabulary` is the padded number of tokens, for Megatron
    arguments that only name a tokenizer. `BadInput` for a file that cannot be read or is of another kind, for a model
    that no plan can express, and for what is missing or wrong.
    """
    file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
    text = read_text(file)
    padded = {} if vocabulary is None else {"padded_vocab_size": vocabulary}
    if is_megatron_log(text):
        return from_megatron(arguments_of_log(text) | padded, str(file))
    match uncompressed(file).suffix.lower():
        case ".json" | ".toml" if padded:
            raise BadInput("--vocabulary: found with a file of another program; allowed: with Megatron's arguments")
        case ".json":
            return from_hugging_face(_mapping(read_json(text, str(file)), file), str(file))
        case ".yaml" | ".yml":
            # Megatron's own test configurations repeat keys, of which its argument parser takes the last.
            document = read_yaml(text, str(file), repeated_keys=True)
            return from_megatron(flattened(_mapping(document, file)) | padded, str(file))
        case ".sh" | ".args" | ".txt":
            options = arguments_of(text)
            return from_megatron(options | padded, str(file), is_whole_job(options))
        case ".toml":
            return from_torchtitan(_toml(text, file), str(file))
        case other:
            raise BadInput(f"{file}: found the ending {other!r}; allowed: {KINDS}")


def _mapping(document: object, file: Path) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise BadInput(f"{file}: found no keys and values; allowed: {KINDS}")
    if {"microbatches", "format"} & document.keys():  # a `model` alone is NeMo's too
        refuse_other_kinds(document, file, FileKind.CONFIG)
    return document


def _toml(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file}: is no TOML: {error}") from None
