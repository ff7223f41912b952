"""Studies: several models learn one thing under one budget, and stand side by side."""
