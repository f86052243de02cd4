"""The peer: Apache Omid 1.1.3 as released, under the load of its own client, on loopback only."""
