"""meshscope: a terminal profiler for distributed training."""

from meshscope.marking import record, step

__all__ = ["__version__", "record", "step"]
__version__ = "0.1.0"
