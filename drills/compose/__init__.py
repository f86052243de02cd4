"""Pulling the plug on the containers of docker-compose.yml: the same load and the same verdict as on processes."""
