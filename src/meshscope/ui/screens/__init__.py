"""The screens: start (what to run, or to replay), watch (live and replay, one and the same), and two dialogs."""
