"""``pythia demo``: a year of real flights loaded by Spark in transactions, watched by a reader that must never see half.

It shows the promises on real parts (ZooKeeper, HBase, Spark, two oracles) and proves them by numbers: every summary is
compared with one that is computed from the source, so a broken promise ends the demo with an error.
"""
