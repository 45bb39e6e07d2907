"""Bound by crossings of steps where labels that must end at a given value or later are left out."""
