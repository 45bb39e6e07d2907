"""What torchtitan needs of its configuration for a pipeline: a function that generated modules define.

Since 0.3.0 its trainer refuses pipelines unless CUDA graphs are disabled. Split backwards meet two of its defaults:

- Selective activation checkpointing hands each saved tensor out once; W asks again, which is an error.
- The chunked loss runs the head, and the head's backward, inside the loss. FSDP, which torchtitan applies at every
  shard degree, keeps the head and the final norm in one group, so the group has had a backward when the stage's
  begins. Where I and W are two calls, the gradient of the final norm is then wrong without a word. Split backwards of
  the last stage therefore need the loss without chunks, which holds all logits of a micro-batch at once.
"""

# `split` are the stages whose backwards are split, `last` is the last stage; a size of None keeps the configuration's.
PIPELINED = '''def pipelined(config, microbatches, size, split, last):
    """What torchtitan needs for this pipeline, whichever its version."""
    parallelism, training = config.parallelism, config.training
    if hasattr(parallelism, "num_pp_microbatches"):
        parallelism.num_pp_microbatches = microbatches
    elif hasattr(parallelism, "pipeline_parallel_microbatch_size"):
        size = size or parallelism.pipeline_parallel_microbatch_size
        parallelism.pipeline_parallel_microbatch_size = size
        training.local_batch_size = microbatches * size
    else:
        raise ValueError("this torchtitan names the number of micro-batches in a way that pipesched does not know")
    if hasattr(training, "disable_cuda_graphs"):
        training.disable_cuda_graphs = True  # pipelines with them are refused
    checkpointing = getattr(config, "activation_checkpoint", None)
    if split and type(checkpointing).__qualname__.startswith("SelectiveAC"):
        config.activation_checkpoint = None  # it hands out what it saved once: W would fail
    loss = getattr(config, "loss", None)
    if last in split and hasattr(loss, "num_chunks"):
        config.loss = loss.loss_fn  # with chunks the final norm's gradient is wrong where I and W are apart
    return config
'''
