"""One panel per file, found by its ``PANEL`` constant. A new panel is a new file here and nothing else."""
