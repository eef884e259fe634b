"""What runs inside ranks: the only modules of meshscope that import torch or JAX, in processes of their own."""
