"""The models, each written in torch and in flax for one device.

The transformer follows GPT-2 without biases: learned positions, layer norm before attention and MLP, GELU (tanh form),
an embedding that is also the output layer. Weights start normal with a standard deviation of 0.02, divided by
√(2 × layers) where a block adds to the residual stream; layer norms start at 1. A mixture of experts is the same with
several MLPs per block, of which a router picks some for each token.

ResNet-50 has group norms instead of batch norms (Wu and He 2018): statistics over a batch would be over a rank's own
slice of it, and no two strategies would learn the same. For the same reason experts are balanced over each sequence
and not over a batch (DeepSeek-V3, equation 17). In torch no token is dropped where an expert is popular; in flax an
expert has room for twice its even share of each sequence.
"""
