"""REST on every oracle: a process of its own beside `pythia tso serve`, under /v1.

The invariant: nothing here decides over a transaction. What it answers it learnt from an oracle, in frames, or from the
commit table; so whatever is lost with this process is lost before it was visible to anybody.

It is a client of the installation like any other. It has a process of its own so that JSON never holds up the oracle's
event loop.
"""
