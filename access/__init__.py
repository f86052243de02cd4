"""Who may do what: roles, the file of tokens, who is let in, and TLS."""

from access.credentials import BadCredentials, Credentials
from access.gate import Bearer, Gate, require
from access.roles import EVERY_ROLE, AccessRole, with_implied
from access.tokens import EVERYBODY, BadTokens, Refusal, Refused, Token, Tokens, hash_of, parse
from access.watching import TokensFile, read_tokens

__all__ = [
    "EVERYBODY",
    "EVERY_ROLE",
    "AccessRole",
    "BadCredentials",
    "BadTokens",
    "Bearer",
    "Credentials",
    "Gate",
    "Refusal",
    "Refused",
    "Token",
    "Tokens",
    "TokensFile",
    "hash_of",
    "parse",
    "read_tokens",
    "require",
    "with_implied",
]
