"""Passes of a stage: values passed on, activations kept or saved, backwards split, replicas summed."""
