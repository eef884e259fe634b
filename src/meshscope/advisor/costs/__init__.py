"""What one operation costs on one device, and one collective among several: seconds, with an interval.

Each is a few fitted constants over a formula; constants and what they were fitted to stand in ``advisor/data``. An
interval holds the errors of points that were left out of the fit. Nothing here knows of models or strategies.
"""
