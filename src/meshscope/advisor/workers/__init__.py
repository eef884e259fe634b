"""Programs of their own that ask torch or JAX: nothing else of the advisor loads either."""
