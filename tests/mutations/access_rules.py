"""Broken rules of who may do what: each would let somebody in, or let somebody see what is not theirs."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_RECEPTION = "unit/tso/serving/test_reception.py"
_TLS = "unit/tso/serving/test_tls.py"
_REST = "unit/rest/test_rest_tokens.py"

ACCESS_RULES = [
    Mutation(
        "how long a look-up takes says how much of a hash was guessed",
        "access/tokens.py",
        "            if hmac.compare_digest(known, given):\n",
        "            if known == given:\n",
        "unit/access/test_tokens.py::test_every_hash_is_compared_in_constant_time_whatever_was_found",
    ),
    Mutation(
        "a token opens after its end",
        "access/tokens.py",
        "if self.expires is not None and now >= self.expires:",
        "if self.expires is not None and now < self.expires:",
        "unit/access/test_tokens.py::test_a_token_ends_at_its_moment",
    ),
    Mutation(
        "a broken file of tokens locks everybody out",
        "access/watching.py",
        "        except BadTokens as error:\n",
        "        except BadTokens as error:\n            self.current = Tokens({})\n",
        "unit/access/test_tokens_file.py::test_a_broken_file_leaves_the_old_tokens_in_force_and_is_told_of_loudly",
    ),
    Mutation(
        "an oracle with a certificate and no tokens is open to the world",
        "access/exposure.py",
        "        if is_loopback(host):\n",
        '        if is_loopback(host) or options["tls_certificate_file"]:\n',
        "unit/access/test_exposure.py::test_nothing_is_exposed_unless_it_was_said_in_as_many_words",
    ),
    Mutation(
        "requests are served before the hello",
        "tso/serving/connection.py",
        "        self._allowed = NOTHING\n",
        "        self._allowed = bytes([1]) * 256\n",
        f"{_RECEPTION}::test_nothing_is_answered_before_a_hello",
    ),
    Mutation(
        "whoever has a token may do everything",
        "tso/serving/reception.py",
        "        allowed[kind] = role in roles\n",
        "        allowed[kind] = bool(roles)\n",
        f"{_RECEPTION}::test_from_no_door_does_a_token_get_what_its_role_has_not",
    ),
    Mutation(
        "a token that was withdrawn goes on to be used by who is in",
        "tso/serving/connection.py",
        "(refusal := self._server.reception.check(self._visitor)) is not None:",
        "(refusal := self._server.reception.check(self._visitor)) is not None and self._rejected:",
        f"{_RECEPTION}::test_a_token_that_is_withdrawn_or_ends_closes_its_connections",
    ),
    Mutation(
        "a client need not show the certificate that is asked for",
        "tso/serving/connection.py",
        'if self._certificate_needed and not transport.get_extra_info("peercert"):',
        'if self._certificate_needed and not transport.get_extra_info("socket"):',
        f"{_TLS}::test_a_client_has_to_show_a_certificate_where_one_is_asked_for",
    ),
    Mutation(
        "a client takes any server that its authority has signed",
        "access/tls.py",
        "    if authority:\n        _load_authority(context, authority)\n",
        "    context.check_hostname = False\n    if authority:\n        _load_authority(context, authority)\n",
        f"{_TLS}::test_a_certificate_that_is_wrong_is_refused_at_once_with_its_reason",
    ),
    Mutation(
        "a caller of REST uses the transactions of others",
        "rest/held_transactions.py",
        "        if known is not None and known.owner not in (None, CALLER.get()):\n",
        "        if known is not None and known.owner is None:\n",
        f"{_REST}::test_a_transaction_is_its_callers_alone",
    ),
    Mutation(
        "questions that are answered on the spot have no bound",
        "tso/serving/connection.py",
        "            self._questions += 1\n",
        "            self._questions += 0\n",
        "unit/tso/serving/test_questions.py",
    ),
    Mutation(
        "who does not read its answers keeps its place in REST",
        "rest/doors.py",
        "self._unread = self.loop.call_later(self.limits.unread_ms_max / 1000, self._drop, UNREAD)",
        "self._unread = None",
        "unit/rest/test_rest_bounds.py::test_who_does_not_read_its_answers_holds_no_place_of_others",
    ),
    Mutation(
        "who does not read the last of an answer keeps its connection in REST",
        "rest/doors.py",
        "        transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)\n",
        "",
        "unit/rest/test_rest_bounds.py::test_who_does_not_read_its_last_answer_is_gone_in_time_as_well",
    ),
    Mutation(
        "a file of tokens that could not be read is not tried again",
        "access/watching.py",
        "            if self._changes.failed(str(error)):",
        "            if True:",
        "unit/access/test_tokens_file.py::test_a_file_that_could_not_be_read_for_a_while_is_read_again_as_it_is",
    ),
    Mutation(
        "a certificate that could not be used is not tried again",
        "access/tls.py",
        "            if self._changes.failed(str(error)):",
        "            if True:",
        f"{_TLS}::test_a_certificate_that_could_not_be_read_for_a_while_is_read_again_as_it_is",
    ),
    Mutation(
        "a page of another site may ask for changes",
        "rest/pages.py",
        '        if origin.partition("://")[2] not in hosts:',
        "        if not hosts:",
        "unit/rest/test_rest_pages.py",
    ),
    Mutation(
        "a page may make its own name point here",
        "rest/pages.py",
        "            if not is_own_host(_without_port(host), names):",
        "            if not host:",
        "unit/rest/test_rest_pages.py",
    ),
    Mutation(
        "connections that say nothing keep others out of the TLS port",
        "tso/serving/tls_door.py",
        "                oldest.cancel()\n",
        "                accepted.close()\n                continue\n",
        f"{_TLS}::test_of_too_many_that_never_shake_hands_the_oldest_goes",
    ),
    Mutation(
        "a client's certificate is not asked for again when its session goes on",
        "access/tls.py",
        "        context.num_tickets = 0\n        context.options |= ssl.OP_NO_TICKET\n",
        "",
        f"{_TLS}::test_a_client_gets_no_ticket_by_which_it_would_show_no_certificate",
    ),
    Mutation(
        "a heartbeat may be sent for what another caller began",
        "rest/oracle_routes.py",
        "    for start in snapshots:\n        services.held_transactions.require_not_others(start)\n",
        "",
        f"{_REST}::test_a_transaction_is_its_callers_alone",
    ),
]
