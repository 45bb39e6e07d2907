"""Models made of layers, plan problems that ask how to cut them into stages, and the problem that a partition makes.

- `plan_problem.py` is the question: a model (`model.py`, `layer.py`), devices (`cluster.py`), and the choices allowed.
- `partition.py` is one answer, `stage_costs.py` what its stages cost, `training_step.py` what is around the pipeline.
- `addition.py` is what a plan has besides layers that are cut: `encoder.py`, `vocabulary.py`, `gradient_norm.py`.
- `derived/` computes the costs of layers from a model's shape and a device's rates.
"""
