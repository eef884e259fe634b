"""meshscope: a terminal profiler for distributed training."""

__version__ = "0.1.0"
