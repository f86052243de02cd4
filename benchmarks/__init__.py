"""Every claim of speed, with the command that measures it: a ratio beside something else in the same run."""
