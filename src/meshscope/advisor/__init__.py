"""What a strategy would cost: memory and time of a training step that nobody has run yet, and which to pick.

A question is an `Architecture` (the model), a `Cluster` (the devices and what joins them) and a `Candidate` (how the
one is laid over the other). Its answer is a `Forecast`: memory by category, the time of a step and what that is made
of. Every number is a `Figure`: it says where it comes from and how far off it may be. What the model does not cover is
refused with a reason, never guessed.
"""
