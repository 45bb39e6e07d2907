"""Model configurations of other programs (Hugging Face, Megatron, torchtitan), read into a plan file's `model`.

- `read_config.py` chooses the reader: `hugging_face.py`, `megatron_arguments.py`, `megatron_log.py`, `torchtitan.py`.
- `model_config.py` is what they yield, `plan_of_config.py` the plan file made of it, with its assumptions.
- `hardware_table.py` has the rates of devices, `layouts.py` the sizes of parallelism that are possible, and
  `expected_error.py` how far off predicted steps were.
"""
