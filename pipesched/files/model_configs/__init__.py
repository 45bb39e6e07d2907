"""Model configurations of other programs (Hugging Face, Megatron, torchtitan), read into a plan file's `model`."""
