"""torchtitan's settings for a pipeline, as a function that generated modules define.

Since 0.3.0 its trainer refuses pipelines unless CUDA graphs are disabled. Split backwards conflict with two of its
defaults:

- Selective activation checkpointing hands each saved tensor out once; W asks again, which is an error.
- The chunked loss runs the head, and the head's backward, inside the loss. FSDP, which torchtitan applies at every
  shard degree, keeps the head and the final norm in one group, so the group has had a backward when the stage's
  begins. Where I and W are two calls, the gradient of the final norm is then silently wrong. Split backwards of the
  last stage therefore need the loss without chunks, which keeps all logits of a micro-batch at once.
"""

# `split` are the stages whose backwards are split, `last` is the last stage; a size or a sequence (sequences of a
# micro-batch, tokens of a sequence) of None keeps the configuration's. Main counts a micro-batch in tokens, 0.3.0 in
# sequences.
PIPELINED = '''def pipelined(config, microbatches, size, split, last, sequence=None):
    """What torchtitan needs for this pipeline, whichever its version."""
    parallelism, training = config.parallelism, config.training
    if hasattr(parallelism, "num_pp_microbatches"):
        parallelism.num_pp_microbatches = microbatches
        if sequence:
            training.max_context_length = sequence
            training.num_tokens_per_microbatch_per_dp_rank = size * sequence
            training.num_tokens_per_train_step = -1  # these micro-batches once
    elif hasattr(parallelism, "pipeline_parallel_microbatch_size"):
        size = size or parallelism.pipeline_parallel_microbatch_size
        parallelism.pipeline_parallel_microbatch_size = size
        training.local_batch_size = microbatches * size
        if sequence:
            training.seq_len = sequence
            training.global_batch_size = -1  # these micro-batches once
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
