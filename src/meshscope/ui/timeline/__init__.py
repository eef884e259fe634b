"""The timeline: a window onto a run's lanes, from all of it down to single nanoseconds; pure but for its screen."""
