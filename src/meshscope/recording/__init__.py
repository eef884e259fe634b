"""The append-only folder that capture writes and everything else reads.

Append-only, because then a reader needs no lock, a crash loses at most the line being written, a folder on a
network file system can be watched from another host, and what a replay shows is what a live screen showed.
Every writer has a journal file of its own; an entry exists once its line is whole; a native trace exists once
it has been renamed into place and announced. Times in entries are ns since the recording's ``t0_unix_ns``.
"""
