"""Writes schedules out for the programs that run or show them, and runs them with PyTorch."""

# The modules that import torch, which is an extra; they register nothing. Nothing else in this house imports torch.
NEEDS_AN_EXTRA = frozenset(
    {
        "torch_bidirectional",
        "torch_model",
        "torch_outcome",
        "torch_profile",
        "torch_profile_chain",
        "torch_profile_memory",
        "torch_profile_passes",
        "torch_profile_processes",
        "torch_profile_stage",
        "torch_profile_transfer",
        "torch_reference",
        "torch_sleep",
        "torch_split",
        "torch_stages",
        "torch_trace",
        "torch_worker",
    }
)
