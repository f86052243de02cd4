"""From decisions to the commit table and to the answers, which may only leave in their order."""
