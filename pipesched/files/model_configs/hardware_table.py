"""Devices by name: what their data sheets say of computing, memory and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Device(NamedTuple):
    """Dense 16-bit TFLOP/s, GiB that a program sees, and GB/s each way: inside a node, and to another one."""

    tflops: float
    memory: int
    in_node: int
    between_nodes: int
    source: str


DEVICES: Mapping[str, Device] = {
    "a100-40gb": Device(312, 39, 300, 25, "NVIDIA A100 data sheet: NVLink 600 GB/s both ways; 200 Gb/s a device"),
    "a100-80gb": Device(312, 79, 300, 25, "NVIDIA A100 data sheet: NVLink 600 GB/s both ways; 200 Gb/s a device"),
    "h100-80gb": Device(989, 79, 450, 50, "NVIDIA H100 SXM data sheet: NVLink 900 GB/s both ways; 400 Gb/s a device"),
    "h800-80gb": Device(989, 79, 200, 50, "DeepSeek-V3, arXiv 2412.19437: NVLink 160 to 200 GB/s; 400 Gb/s a device"),
    "h200-141gb": Device(989, 140, 450, 50, "NVIDIA H200 data sheet: NVLink 900 GB/s both ways; 400 Gb/s a device"),
    "b200-180gb": Device(
        2250, 178, 900, 50, "NVIDIA DGX B200 data sheet: NVLink 1800 GB/s both ways; 400 Gb/s a device"
    ),
    "b300-288gb": Device(
        2250, 268, 900, 100, "NVIDIA DGX B300 data sheet: NVLink 1800 GB/s both ways; 800 Gb/s a device"
    ),
    "gb200-186gb": Device(2500, 184, 900, 50, "NVIDIA GB200 NVL72 data sheet: NVLink 1800 GB/s; 400 Gb/s a device"),
    "gb300-288gb": Device(2500, 277, 900, 100, "NVIDIA GB300 NVL72 data sheet: NVLink 1800 GB/s; 800 Gb/s a device"),
    "h100-96gb": Device(989, 94, 450, 50, "H100 with HBM2e, 500 W, as pytorch/torchtitan benchmarks name it"),
    "h20-96gb": Device(148, 95, 450, 50, "NVIDIA H20 data sheet: NVLink 900 GB/s both ways; 400 Gb/s a device"),
    "a800-80gb": Device(312, 79, 200, 25, "NVIDIA A800 data sheet: NVLink 400 GB/s both ways; 200 Gb/s a device"),
    "mi325x-256gb": Device(1307, 255, 448, 50, "AMD MI325X data sheet: Infinity Fabric 896 GB/s; 400 Gb/s a device"),
    "mi355x-288gb": Device(2500, 287, 538, 50, "AMD MI355X data sheet: Infinity Fabric 1075 GB/s; 400 Gb/s a device"),
    "mi300x-192gb": Device(1307, 191, 448, 50, "AMD MI300X data sheet: Infinity Fabric 896 GB/s; 400 Gb/s a device"),
}
