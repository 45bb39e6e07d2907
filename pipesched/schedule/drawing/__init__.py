"""Shared parts of all drawings of a timeline: boxes and their colours, without a drawing library."""
