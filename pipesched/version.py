"""The tool's version, written once."""

VERSION = "0.1.0"
