"""What each panel says of itself: the help under ``?``, and its answer as a table to copy and export.

One file per panel, named like the panel's own. ``HELP`` names every heading that the panel draws, with its unit and
what a share is a share of; a function named after what it lists makes the ``Sheet``. A short panel
may keep both in its own file: all that counts is that its ``Panel`` has ``help`` and ``data``.
"""
