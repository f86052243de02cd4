"""The oracle process: decisions, group-commit pipeline, roles, server, command line. Nobody imports this room."""
