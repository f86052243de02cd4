"""``pythia demo``: a year of real flights loaded by Spark in transactions, and a reader that must not see half of one.

It shows the promises on real parts (ZooKeeper, HBase, Spark, two oracles) and proves them by numbers: every summary is
compared with one that is computed from the source, so a broken promise ends the demo with an error.
"""
