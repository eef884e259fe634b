"""Makes a recording: the only floor that starts processes or touches devices.

Three kinds of process. The one that asks (a screen, a command line) checks the request and starts a supervisor,
then only reads. The **supervisor** has a session of its own, so a closed terminal does not reach it; it owns the
ranks and the sensors, decides when every rank profiles, and ends everything it started on every way out. The
**ranks** run ``workers/``, which may import torch or JAX; nothing else here does.

Nothing outlives its owner: whatever the supervisor starts asks the kernel for SIGKILL on its parent's death, and
torchrun's ranks do the same before they import anything (``lifeline``). Ranks are watched by process id, which
tells of a kill within a poll; the exit code, which only their parent is told, is read from /proc or torchrun's log.

A user's own command is another matter (``own/``): it is started as it is, its processes are only listened to, and
nothing but a person's stop ends it.

A run that stands still is asked before it is ended (``watchdog``): every rank leaves its stacks, and torch's its flight
recorder, first when it looks like a hang and again when patience is over. What somebody else started is recorded by
``attach``, whose supervisor owns no rank, sends no signal and ends nothing.

A strategy that fails ends its own recording; the strategies after it still run, since each stands alone and the
comparison of the others is still worth having. The run as a whole then counts as failed. A stop ends all of them.
"""
