"""One decoder-only transformer, written in torch and in flax.

Both follow GPT-2 without biases: learned positions, layer norm before attention and MLP, GELU (tanh form), an
embedding that is also the output layer. Weights start normal with a standard deviation of 0.02, divided by
√(2 × layers) where a block adds to the residual stream; layer norms start at 1.
"""
