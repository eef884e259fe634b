"""Strategies side by side: what a screen of its own shows of them; pure but for its screen."""
