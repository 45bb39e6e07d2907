"""The table of devices by name: data sheet numbers, and the shares of them that training reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipesched.layers.derived.data_links import ByNodes


@dataclass(frozen=True)
class Device:
    """A device: numbers of its data sheet, then fitted shares of them that training reaches.

    `tflops` is the peak of dense 16-bit products, `tflops_8bit` and `tflops_4bit` of narrower ones (None: no such
    units). `source` says where the numbers come from; the device has `multiprocessors`. `memory` is in GiB as a program
    sees it, bandwidths in GB/s of one device in one direction: `memory_bandwidth`, `in_node` among the `node` devices
    of a node, `between_nodes` of one device to other nodes.

    `products`, `narrow_products` and `attention` are the shares of the peak that large 16-bit products, narrower
    products and attention reach; `memory_share` is the share of the memory bandwidth, and `tensor_share`,
    `expert_share`, `data_share` those of the link bandwidths in collectives. `dense_launch` and `moe_launch` are the
    least time, in ms, of a layer's forward; `moe_wait` is the time, in ms, that each pass of a layer with experts waits
    for its host where no CUDA graph launches its kernels. `data_bandwidth`, in GB/s of one device, or of all-reduce by
    nodes, is that of exchanging gradients; None: it follows from links and `data_share`. Shares and times are fitted to
    published steps (`python -m benchmarks.accuracy --fit`). A device of this table without any has those of the most
    similar one, one of a hardware file those of the device that its `like` names, or these defaults.
    """

    tflops: float
    memory: float
    memory_bandwidth: float
    multiprocessors: int
    in_node: float
    between_nodes: float
    source: str
    tflops_8bit: float | None = None
    tflops_4bit: float | None = None
    node: int = 8
    products: float = 0.53
    narrow_products: float = 0.56
    attention: float = 0.55
    memory_share: float = 0.846
    tensor_share: float = 0.489
    expert_share: float = 0.663
    data_share: float = 0.776
    dense_launch: float = 0.3
    moe_launch: float = 1
    moe_wait: float = 1.446
    data_bandwidth: float | ByNodes | None = None


# What may be fitted: shares, and times of launching.
SHARES = (
    "products", "narrow_products", "attention", "memory_share", "tensor_share", "expert_share", "data_share"
)  # fmt: skip
LAUNCHES = ("dense_launch", "moe_launch", "moe_wait")
# The most of the data sheet that products sustain in 16 bits at the full power of an H200 (H100's chip) and of a B200:
# 708.5 and 1,456.3 TFLOP/s (github.com/stas00/ml-engineering, *Maximum Sustained Matmul FLOPS*).
SUSTAINED = {"h100": 708.5 / 989, "b200": 1456.3 / 2250}


class ProductParams(NamedTuple):
    """Rate of matrix products on devices for which the most that they sustain is known.

    `of_sustained`: the share of the sustained rate of large square products that products of training reach, between 0
    and 1. It is what the prior of `benchmarks.accuracy --fit` has of cuBLAS's, 0.65 of 0.75 of the data sheet; used for
    devices without fitted steps, and as the prior of those in `SUSTAINED`.
    """

    of_sustained: float = 0.87

    def reached(self, sustained: float, peak: float) -> float:
        """Return the share of the data sheet's `peak` that products of training reach, both rates in TFLOP/s.

        `sustained` is the rate of large products.
        """
        return self.of_sustained * sustained / peak


PRODUCTS = ProductParams()
_SHEET, _SLOW, _FAST = "data sheet; network of", "200 Gb/s a device", "400 Gb/s a device"
_A100 = Device(
    312, 79, 2039, 108, 300, 25, f"NVIDIA A100 {_SHEET} {_SLOW}",
    products=0.709, attention=0.406,
)  # fmt: skip
_H100 = Device(
    989, 79, 3350, 132, 450, 50, f"NVIDIA H100 SXM {_SHEET} {_FAST}", 1979,
    products=0.589, narrow_products=0.57, attention=0.623,
)  # fmt: skip
_B200 = Device(
    2250, 178, 8000, 148, 900, 50, f"NVIDIA DGX B200 {_SHEET} {_FAST}", 4500, 9000,
    products=0.482, narrow_products=0.511, attention=0.428,
)  # fmt: skip
# B300 and GB300 compute twice as many exponentials a second as B200 (NVIDIA, *Inside NVIDIA Blackwell Ultra*). That of
# a score takes as long as 55 numbers of a head on H100 (`FlashParams`), thus as 111 on B200, whose multiprocessors
# multiply 2.03 times as fast and whose exponentials are no faster; heads have 128 numbers.
_ULTRA_ATTENTION = (128 + 111) / (128 + 111 / 2)
# No published steps of AMD's devices were fitted: their products follow from the most that was measured of them. AMD's
# own measurements are 708 and 1,273 TFLOP/s of MI300X, 843 and 1,519 of MI325X (rocm.blogs.amd.com, *Measuring
# Max-Achievable FLOPs*, part 2). Of MI355X 1,565 TFLOP/s in 16 bits were measured (Maximum Achievable Matmul FLOPS,
# github.com/stas00/ml-engineering); narrower products are to them what they are on MI300X. MI350X is the same chip at
# 1,000 W, not 1,400: its rates are lower by the power.
_MI300X = Device(
    1307, 191, 5300, 304, 448, 50, f"AMD MI300X {_SHEET} {_FAST}", 2614, products=PRODUCTS.reached(708, 1307),
    narrow_products=PRODUCTS.reached(1273, 2614), attention=0.4,
)  # fmt: skip
# The rate of products for the power of a device of the same chip: 843 TFLOP/s with MI325X's 1,000 W for 708 with
# MI300X's 750.
_OF_POWER = 0.6
_MI355X = replace(
    _MI300X, tflops=2500, tflops_8bit=5000, tflops_4bit=10000, memory=287, memory_bandwidth=8000,
    multiprocessors=256, in_node=538, products=PRODUCTS.reached(1565, 2500),
    narrow_products=PRODUCTS.reached(1565, 2500) * (1273 / 2614) / (708 / 1307),
    source=f"AMD MI355X {_SHEET} {_FAST}",
)  # fmt: skip
# Of the rates of MI355X, as shares of a data sheet that has 2,300 TFLOP/s in 16 bits for its 2,500.
_OF_MI355X = (1000 / 1400) ** _OF_POWER * 2500 / 2300
DEVICES: Mapping[str, Device] = {
    "v100-32gb": replace(
        _A100, tflops=125, memory=31, memory_bandwidth=900, multiprocessors=80, in_node=150, between_nodes=12.5,
        source=f"NVIDIA V100 SXM2 {_SHEET} 100 Gb/s a device",
    ),
    "a100-40gb": replace(_A100, memory=39, memory_bandwidth=1555),
    "a100-80gb": _A100,
    "a800-80gb": replace(_A100, in_node=200, source=f"NVIDIA A800 {_SHEET} {_SLOW}"),
    "h100-80gb": _H100,
    # `nvidia-smi boost-slider --vboost 1` gives power of memory to tensor cores: what 16-bit products gain is fitted to
    # runs of NVIDIA's recipes that do so (`enable_vboost` in dgxc-benchmarking 25.02 to 25.05).
    "h100-80gb-vboost": replace(
        _H100, products=_H100.products * 1.15, source=f"{_H100.source}; nvidia-smi boost-slider --vboost 1",
    ),
    "h100-96gb": replace(
        _H100, memory=94, memory_bandwidth=2400, products=_H100.products * (500 / 700) ** _OF_POWER,
        narrow_products=_H100.narrow_products * (500 / 700) ** _OF_POWER,
        attention=_H100.attention * (500 / 700) ** _OF_POWER,
        source="H100 of HBM2e and 500 W, as torchtitan's benchmarks name it",
    ),
    "h800-80gb": replace(_H100, in_node=200, source="DeepSeek-V3, arXiv 2412.19437: NVLink 160 to 200 GB/s; 400 Gb/s"),
    "h20-96gb": replace(
        _H100, tflops=148, tflops_8bit=296, memory=95, memory_bandwidth=4000, multiprocessors=78, products=0.9,
        narrow_products=0.9, attention=0.8, source=f"NVIDIA H20 {_SHEET} {_FAST}",
    ),
    "h200-141gb": replace(_H100, memory=140, memory_bandwidth=4800, source=f"NVIDIA H200 {_SHEET} {_FAST}"),
    "b200-180gb": _B200,
    "b300-288gb": replace(
        _B200, memory=268, between_nodes=100, tflops_4bit=13500, attention=_B200.attention * _ULTRA_ATTENTION,
        source=f"NVIDIA DGX B300 {_SHEET} 800 Gb/s a device",
    ),
    "gb200-186gb": replace(
        _B200, tflops=2500, tflops_8bit=5000, tflops_4bit=10000, memory=184, node=72,
        source=f"NVIDIA GB200 NVL72 {_SHEET} {_FAST}",
    ),
    # Products of Blackwell are bound by its power: 1,400 W, GB200's 1,200.
    "gb300-288gb": replace(
        _B200, tflops=2500, tflops_8bit=5000, tflops_4bit=15000, memory=277, between_nodes=100, node=72,
        products=_B200.products * 7 / 6, narrow_products=_B200.narrow_products * 7 / 6,
        attention=_B200.attention * _ULTRA_ATTENTION,
        source=f"NVIDIA GB300 NVL72 {_SHEET} 800 Gb/s a device",
    ),
    "mi300x-192gb": _MI300X,
    "mi325x-256gb": replace(
        _MI300X, memory=255, memory_bandwidth=6000, products=PRODUCTS.reached(843, 1307),
        narrow_products=PRODUCTS.reached(1519, 2614), source=f"AMD MI325X {_SHEET} {_FAST}",
    ),
    "mi350x-288gb": replace(
        _MI355X, tflops=2300, tflops_8bit=4600, tflops_4bit=9200, products=_MI355X.products * _OF_MI355X,
        narrow_products=_MI355X.narrow_products * _OF_MI355X, attention=_MI355X.attention * _OF_MI355X,
        source=f"AMD MI350X {_SHEET} {_FAST}",
    ),
    "mi355x-288gb": _MI355X,
}  # fmt: skip
