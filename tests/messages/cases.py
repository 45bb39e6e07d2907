"""The commands whose words are held, by topic, and the files that they read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

PLAIN = "devices: 3\nmicrobatches: 4\ntime_unit: ms\ntimes: {forward: 2, backward: 2, weight: 1, transfer: 0.5}\n"
START = PLAIN + "memory: {unit: GiB, capacity: 30, static: 10, activation: 5}\n"
UNEVEN = "devices: 2\nmicrobatches: 3\ntimes: {forward: [2, 3], backward: [3, 2], weight: 1}\nmemory: {capacity: 2}\n"

# Problem files with a mistake, by name.
MISTAKEN: Mapping[str, str] = {
    "empty": "",
    "list": "- devices\n",
    "not-yaml": "devices: [2\nmicrobatches: 4\n",
    "twice": "devices: 2\ndevices: 3\nmicrobatches: 4\ntimes: {forward: 1, backward: 1}\n",
    "unknown-key": PLAIN.replace("transfer", "transfers") + "memroy: {capacity: 3}\n",
    "missing": "devices: 2\ntimes: {forward: 1}\n",
    "wrong-values": 'devices: 0\nmicrobatches: 2.5\ntimes: {forward: -1, backward: "two", weight: .nan}\n',
    "wrong-entries": PLAIN.replace("weight: 1", "weight: [1, x, -2]"),
    "wrong-length": PLAIN.replace("weight: 1", "weight: [1, 2]"),
    "placement": PLAIN + "placement: circle\n",
    "placement-device": PLAIN + "placement: [0, 1, 3]\n",
    "idle-device": PLAIN + "placement: [0, 1, 0]\n",
    "chunks": PLAIN + "placement: linear\nchunks: 2\n",
    "objective": PLAIN + "objective: speed\n",
    "freed": PLAIN + "memory: {activation: 1, freed_by_backward: 2}\n",
    "static-above": PLAIN + "memory: {capacity: 4, static: 5}\n",
    "sections": "devices: 2\nmicrobatches: 4\ntimes: 5\nmemory: [1, 2]\nname: 3\n",
    "negative": PLAIN + "memory: {capacity: -1, static: [1, 2, 3, 4], activation: x, freed_by_backward: [1, x, 2]}\n",
    "fused": PLAIN.replace("weight: 1", "fused: 3"),
    "both-directions": PLAIN.replace("0.5", "[1, 2]") + "placement: bidirectional\n",
    "chunks-of-a-list": PLAIN + "placement: [0, 1, 2]\nchunks: 1\n",
    "syntax": "devices: 2\n\t- b\n",
    "older-form": "num_stages: 2\nforward_time: 1\np2p_time: [1, 2]\n",
    "older-lengths": "num_stages: 2\nnum_batches: 2\nforward_times: [1]\n",
    "too-little": PLAIN + "memory: {capacity: 0.5}\n",
}

DERIVED = """devices: 2
microbatches: 4
model:
  layers: 4
  hidden: 1024
  vocabulary: 32000
  attention: {heads: 16, kv_heads: 4}
  ffn: 2816
  dense_layers: 1
  experts: {number: 16, per_token: 2, ffn: 704}
  sequence: 2048
  parallel: {tensor: 2, expert: 8, data: 4}
hardware: {sustained_tflops: 200, memory: 80, reserved: 8, pipeline_bandwidth: 25, tensor_bandwidth: 150,
  expert_bandwidth: 40}
"""
PEAKS = """memory: {unit: GiB, capacity: 60}
layers: [{name: block, count: 8}]
runs:
  - {partition: [2, 3, 3], recompute: [0, 1, 0], microbatches: 3, peaks: [40, 44, 45]}
  - {partition: [3, 2, 3], recompute: [1, 0, 0], microbatches: 1, peaks: [42.5, 29, null]}
"""

FILES: Mapping[str, str] = {
    "derived.yaml": DERIVED,
    "derived-loop.yaml": DERIVED + "placement: interleaved\n",
    "derived-wrong.yaml": DERIVED.replace("tensor: 2", "tensor: 3").replace("per_token: 2", "per_token: 20"),
    "derived-missing.yaml": DERIVED.replace("  ffn: 2816\n", "").replace("memory: 80, ", "") + "layers: []\n",
    "peaks-few.yaml": PEAKS,
    "peaks.yaml": PEAKS + "  - {partition: [3, 4, 1], recompute: [0, 4, 0], microbatches: 1, peaks: [null, 47, 23]}\n",
    "start.yaml": START,
    "sweep.yaml": START + "sweep: {memory: [12, 20, 30], placement: [linear, [0, 1, 5], v-shape]}\n",
    "sweep-wrong.yaml": START + "sweep: {same_model: perhaps, memory: [20]}\n",
    "uneven.yaml": UNEVEN,
    "v.yaml": PLAIN + "placement: v-shape\n",
    **{f"{name}.yaml": text for name, text in MISTAKEN.items()},
    "other.json": json.dumps({"format": "other"}),
}

# The searches come to their end by themselves, on one thread: what they say depends on no clock.
_SEARCH = ("--workers", "1", "--time-limit", "300")

# By topic, the commands that run one after the other in one folder. `EDIT FILE KEY JSON` changes a key of a JSON file.
TOPICS: Mapping[str, Sequence[Sequence[str]]] = {
    "problem-files": [*(("solve", f"{name}.yaml", *_SEARCH) for name in MISTAKEN), ("solve", "absent.yaml")],
    "options": [
        ("simulate", "start.yaml", "--schedule", "1f1v"),
        ("simulate", "start.yaml", "--schedule", "dualpipe"),
        ("simulate", "start.yaml", "--schedule", "1f1b", "-o", "picture.bmp"),
        ("compare", "start.yaml", "--no-optimal", "--schedules", "zb-h1,none"),
        ("compare", "start.yaml", "--no-optimal", "-o", "picture.png"),
        ("solve", "start.yaml", "--objective", "period", "--explain"),
        ("new", "start.yaml"),
        ("simulate",),
        ("sovle", "start.yaml"),
        ("solve", "start.yaml", "--time-limit", "-1"),
        ("solve", "start.yaml", "--gap", "2"),
        ("solve", "start.yaml", "--workers", "0"),
        ("frontier", "start.yaml", "--memory", "8"),
    ],
    "layers": [
        ("layers", "derived.yaml"),
        ("layers", "derived-wrong.yaml"),
        ("layers", "derived-missing.yaml"),
        ("fit-memory", "peaks-few.yaml"),
        ("fit-memory", "peaks.yaml", "-o", "fitted.yaml"),
        ("plan", "derived.yaml", "--settings", "megatorn,all"),
        ("plan", "derived.yaml", "--partition", "megatron=Ett||L"),
        ("plan", "derived.yaml", "--for", "megatorn"),
        ("plan", "derived-loop.yaml", "--for", "deepspeed"),
    ],
    "solve": [
        ("solve", "start.yaml", *_SEARCH, "-o", "results"),
        ("check", "results/schedule.json"),
        ("EDIT", "results/schedule.json", "certificate.evidence.device", "9"),
        ("check", "results/schedule.json"),
        ("solve", "start.yaml", *_SEARCH, "--then-memory"),
        ("solve", "start.yaml", *_SEARCH, "--for", "deepspeed"),
        ("solve", "uneven.yaml", *_SEARCH, "--objective", "span"),
        ("solve", "start.yaml", *_SEARCH, "--objective", "period"),
    ],
    "compare-and-simulate": [
        ("compare", "start.yaml", "--no-optimal"),
        ("compare", "v.yaml", "--no-optimal", "--objective", "span"),
        ("compare", "uneven.yaml", "--no-optimal", "--why-not"),
        ("compare", "start.yaml", "v.yaml", "--no-optimal", "--schedules", "1f1b,zbv"),
        ("simulate", "start.yaml", "--schedule", "zb-h1"),
        ("simulate", "start.yaml", "--schedule", "gpipe"),
        ("frontier", "uneven.yaml", *_SEARCH),
    ],
    "schedule-files": [
        ("simulate", "start.yaml", "--schedule", "zb-h1", "-o", "one.json"),
        ("validate", "one.json"),
        ("check", "one.json"),
        ("plot", "one.json", "-o", "one.gif"),
        ("validate", "other.json"),
        ("validate", "start.yaml"),
        ("EDIT", "one.json", "value", "1"),
        ("validate", "one.json"),
        ("EDIT", "one.json", "starts.F0.1", "0"),
        ("validate", "one.json"),
        ("EDIT", "one.json", "orders", '[["F0.0"], [], ["F2.0", "F0.1"]]'),
        ("validate", "one.json"),
        ("EDIT", "one.json", "tick", '"none"'),
        ("validate", "one.json"),
        ("EDIT", "one.json", "format_version", "99"),
        ("validate", "one.json"),
    ],
    "sweep": [
        ("sweep", "start.yaml"),
        ("sweep", "start.yaml", "--set", "memory"),
        ("sweep", "start.yaml", "--set", "memory=4.."),
        ("sweep", "start.yaml", "--set", "memory=4,4"),
        ("sweep", "start.yaml", "--set", "memory=1p..4"),
        ("sweep", "start.yaml", "--set", "memroy.capacity=4..6"),
        ("sweep", "start.yaml", "--set", "times.forward[1]=4..6"),
        ("sweep", "start.yaml", "--set", "memory=20", "--set", "memory.capacity=30"),
        ("sweep", "sweep.yaml", "--parquet"),
        ("sweep", "sweep.yaml", "--jobs", "2", "--cluster", "tcp://127.0.0.1:1"),
        ("sweep", "sweep.yaml", "--write", "9"),
        ("sweep", "sweep.yaml", "--store", "start.yaml"),
        ("sweep", "sweep-wrong.yaml"),
        ("sweep", "sweep.yaml", *_SEARCH, "--jobs", "1", "--same-model", "-o", "swept", "--write", "2"),
        ("sweep", "sweep.yaml", *_SEARCH, "--jobs", "1", "--same-model", "-o", "swept"),
        ("sweep", "sweep.yaml", *_SEARCH, "--jobs", "1", "--set", "memory=10", "--set", "placement=linear,v-shape"),
    ],
    "export": [
        ("simulate", "start.yaml", "--schedule", "1f1b", "-o", "line.json"),
        ("simulate", "v.yaml", "--schedule", "zbv", "-o", "v.json"),
        *(
            ("export", file, "--format", name)
            for name in ("torch-csv", "torch-csv-comms", "torchtitan", "deepspeed", "jaxpp", "zero-bubble-nodes")
            for file in ("line.json", "v.json")
        ),
        ("export", "line.json", "--format", "program"),
        ("export", "line.json", "--format", "torch"),
        ("export", "line.json", "--format", "jaxpp", "--option", "colour=red"),
        ("export", "line.json", "--format", "torchtitan", "--option", "layers=two"),
        ("export", "line.json", "--format", "torchtitan", "--option", "layer=2"),
        ("export", "line.json", "--format", "torch-csv-comms", "--option", "fsdp"),
    ],
}
