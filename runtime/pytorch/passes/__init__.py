"""What the passes of a stage do: values passed on, activations kept or saved, backwards split, replicas summed."""
