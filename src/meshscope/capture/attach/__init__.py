"""Records processes that somebody else started, through doors that they have left open themselves.

Three doors: libkineto's daemon socket (torch with ``KINETO_USE_DAEMON=1``), the profiler server of JAX, and the debug
worker server of torch.distributed. Nothing is injected, no signal is sent and no byte goes to a port that nobody named:
a process that is attached to goes on when its watcher leaves, and ends as it would have ended.
"""
