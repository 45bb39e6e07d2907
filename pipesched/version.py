"""The version of pipesched."""

VERSION = "0.1.0"
