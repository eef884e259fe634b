"""A torch whose libraries are missing."""

raise ImportError("libtorch.so: cannot open shared object file")
