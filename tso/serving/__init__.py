"""The port that clients come to: connections, frames, who may come in, and what is told of it all."""
