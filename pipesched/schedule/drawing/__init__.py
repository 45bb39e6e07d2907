"""Shared parts of all drawings of a timeline: its boxes and their colours, without a drawing library."""
