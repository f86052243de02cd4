"""Broken rules of the store's adapter for HBase: what its gateway's answers mean, how much is asked for, who waits."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_GATEWAY = "unit/store/test_hbase_gateway.py::"
_TLS = "unit/store/test_gateway_tls.py::"
_KERBEROS = "unit/store/test_gateway_kerberos.py::"
_HTTP = "unit/store/test_gateway_http.py::"
_SASL = "unit/store/test_sasl.py::"
_SIZE = "unit/store/test_answer_size.py::"
_SLOW = _GATEWAY + "TestScans::test_rows_that_take_longer_than_a_request_are_waited_for"
_SCANS = _GATEWAY + "TestScans::"
_REGIONS = _GATEWAY + "TestRegions::"

STORE_RULES = [
    Mutation(
        "a connection is opened in the place of one that is not closed yet",
        "store/hbase/pool.py",
        "            if connection is not None:\n                connection.close()  # before anybody",
        "        if connection is not None:\n            connection.close()  # before anybody",
        "unit/store/test_store_pool.py::test_nobody_opens_a_connection_in_the_place_of_one_that_is_not_closed_yet",
    ),
    Mutation(
        "who is interrupted while a connection is opened for him keeps its place",
        "store/hbase/pool.py",
        "            self._opening.discard(held)\n            self._changed.notify_all()\n",
        "            self._changed.notify_all()\n",
        "unit/store/test_store_pool.py::test_whoever_is_interrupted_keeps_no_place_and_no_lock",
    ),
    Mutation(
        "each replica of a region is a range to read",
        "store/hbase/regions.py",
        "sorted(set(named))",
        "sorted(named)",
        _REGIONS + "test_a_region_with_replicas_is_one_range",
    ),
    Mutation(
        "what failed for a moment is refused for a permission that the write does not need",
        "store/hbase/adapter.py",
        "connection.client.isTableEnabled(name)",
        "connection.client.getColumnDescriptors(name)",
        "unit/store/test_hbase_gateway.py::"
        "test_a_write_that_failed_for_a_moment_is_repeated_by_who_may_only_read_and_write",
    ),
    Mutation(
        "a write beyond a space quota is repeated",
        "store/hbase/failures.py",
        '    "space quota",',
        "    ",
        "unit/store/test_hbase_gateway.py::test_an_error_that_will_not_pass_is_given_at_once",
    ),
    Mutation(
        "a write is repeated without asking whether it is still wanted",
        "store/hbase/gateway.py",
        "self._retrying(repeated)(attempt, fresh=True)",
        "self._retrying(repeated)(self._attempt, call, fresh=True)",
        _GATEWAY + "test_who_puts_columns_is_asked_before_each_request_and_before_each_repetition",
    ),
    Mutation(
        "a gap or an overlap between regions is handed on",
        "store/hbase/regions.py",
        "        if not left.stop or left.stop != right.start:",
        "        if False:",
        _REGIONS + "test_regions_with_a_gap_or_an_overlap_are_asked_for_again",
    ),
    Mutation(
        "a scan cannot go on after the longest row key",
        "store/validation.py",
        "ROW_KEY_BYTES_MAX + 1",
        "ROW_KEY_BYTES_MAX",
        "unit/store/test_store_validation.py unit/client/snapshots/test_reading.py",
    ),
    Mutation(
        "a connection in use is waited for like a full pool, while others are idle",
        "store/hbase/pool.py",
        "                    if not self._changed.wait(min(preferred_until, deadline) - self._monotonic()):\n"
        "                        prefer = None\n",
        "                    self._wait(deadline)\n",
        "unit/store/test_store_pool.py::test_only_a_full_pool_is_told_to_be_full",
    ),
    Mutation(
        "as many large rows are asked for at once as small ones",
        "store/answer_size.py",
        "max(1, min(fitting, GROWTH_MAX * rows))",
        "GROWTH_MAX * rows",
        _SIZE + "test_no_answer_of_large_rows_is_much_larger_than_wanted",
    ),
    Mutation(
        "thousands of rows are asked for after a few small ones",
        "store/answer_size.py",
        "max(1, min(fitting, GROWTH_MAX * rows))",
        "max(1, fitting)",
        _SIZE + "test_rows_that_become_large_are_met_in_small_numbers",
    ),
    Mutation(
        "an answer that was lost is asked for again as large as it was",
        "store/answer_size.py",
        "        self._rows = max(1, rows // 2)\n",
        "        self._rows = rows\n",
        _SIZE + "test_after_a_lost_answer_half_as_many_rows_are_asked_for",
    ),
    Mutation(
        "an answer is taken for whatever was asked last",
        "store/hbase/numbered_client.py",
        "if (method, number) != self.expected:",
        "if method != self.expected[0]:",
        "unit/store/test_hbase_gateway.py::test_a_read_is_repeated_on_a_fresh_connection "
        "unit/store/test_hbase_gateway.py::test_a_compare_and_set_is_never_sent_twice",
    ),
    Mutation(
        "an answer that trickles keeps its caller without an end",
        "store/hbase/punctual.py",
        "rest = allowed - self._waited_seconds",
        "rest = self._limit_seconds",
        "unit/store/test_punctual.py::test_an_answer_that_trickles_ends",
    ),
    Mutation(
        "what it may mean that a gateway hangs up is told only where it does so after the request",
        "store/hbase/punctual.py",
        "        except HUNG_UP as error:\n",
        "        except ssl.SSLEOFError as error:\n",
        "unit/store/test_punctual.py::test_who_hangs_up_is_told_of_in_one_way_whoever_meets_it",
    ),
    Mutation(
        "as much memory is taken as a gateway says",
        "store/hbase/column_answers.py",
        "if not 0 <= count <= rows_max:",
        "if count < 0:",
        "unit/store/test_column_answers.py::"
        "test_more_rows_than_were_asked_for_are_refused_before_memory_is_taken_for_them",
    ),
    Mutation(
        "a scan goes on from one region into the next",
        "store/hbase/regions.py",
        "is_within = above < len(starts) and (not stop or starts[above] < stop)",
        "is_within = False",
        "unit/store/test_region_starts.py::test_the_parts_are_the_range_and_each_lies_in_one_region "
        "unit/store/test_hbase_gateway.py::TestScans::test_no_scan_of_the_gateway_leaves_a_region",
    ),
    Mutation(
        "a backward scan goes on from one region into the one before",
        "store/hbase/regions.py",
        "is_within = start < cut",
        "is_within = False",
        "unit/store/test_region_starts.py::test_the_parts_are_the_range_and_each_lies_in_one_region",
    ),
    Mutation(
        "where regions begin is believed for good",
        "store/hbase/regions.py",
        "if known is None or now > known[0]:",
        "if known is None:",
        "unit/store/test_region_starts.py::test_regions_are_asked_for_again_after_a_while",
    ),
    Mutation(
        "a scan waits no longer however slow it is",
        "store/hbase/scanner.py",
        "if self._patience.grow() or rows > self._rows_min:",
        "if False:",
        _SLOW,
    ),
    Mutation(
        "a scan whose rows are slow does not come to ask for one",
        "store/hbase/scanner.py",
        "if self._patience.grow() or rows > self._rows_min:",
        "if self._patience.grow():",
        _SCANS + "test_rows_that_come_slowly_come_one_by_one_at_last",
    ),
    Mutation(
        "a scan that goes on begins with the row that was given last",
        "store/hbase/scanner.py",
        'self._last if request.reverse else self._last + b"\\x00"',
        "self._last",
        _SCANS + "test_a_scan_ends_at_a_row_that_never_comes",
    ),
    Mutation(
        "a scan goes on from a key to itself",
        "store/hbase/scanner.py",
        'return bool(stop) and row + b"\\x00" >= stop',
        "return False",
        _SCANS + "test_a_scan_asks_nothing_more_where_no_key_can_follow",
    ),
    Mutation(
        "a slow scan waits beyond the longest wait",
        "store/hbase/patience.py",
        "        if self.wait_ms >= self._wait_ms_max:\n",
        "        if False:\n",
        "unit/store/test_patience.py",
    ),
    Mutation(
        "a scan that is only slow ends with the time for one that fails",
        "store/hbase/gateway.py",
        "isinstance(state.outcome.exception(), AnswerSlow)",
        "False",
        _SLOW,
    ),
    Mutation(
        "a failure after slow answers has no time left",
        "store/hbase/gateway.py",
        "                slow_until_s = since_first_s\n",
        "",
        _SCANS + "test_what_fails_after_slow_answers_has_all_its_time",
    ),
    Mutation(
        "a gateway that TLS is spoken before is spoken to in clear text",
        "store/hbase/connection.py",
        "        if context is not None:\n",
        "        if False:\n",
        _TLS + "test_cells_are_read_and_written_over_tls",
    ),
    Mutation(
        "commits go to a gateway that TLS is spoken before in clear text",
        "store/hbase/async_connection.py",
        "ssl=context, server_hostname=name",
        "ssl=None, server_hostname=None",
        _TLS + "test_cells_are_read_and_written_over_tls",
    ),
    Mutation(
        "a gateway's certificate may name anybody",
        "access/service_tls.py",
        "    return client_context(files.authority_file, files.certificate_file, files.key_file)\n",
        "    context = client_context(files.authority_file, files.certificate_file, files.key_file)\n"
        "    context.check_hostname = False\n"
        "    return context\n",
        _TLS + "test_the_certificate_has_to_name_the_host_or_the_name_that_is_set",
    ),
    Mutation(
        "without an authority's file a gateway's certificate is not looked at",
        "access/tls.py",
        "        context.load_default_certs()\n",
        "        context.check_hostname = False\n        context.verify_mode = ssl.CERT_NONE\n",
        _TLS + "test_without_an_authority_the_systems_own_are_believed",
    ),
    Mutation(
        "whoever names files for TLS and no address of it is led past TLS",
        "access/service_tls.py",
        'found.unspoken(service, "speaks TLS", TLS)',
        '""',
        _TLS + "test_files_for_tls_are_refused_where_no_address_says_tls",
    ),
    Mutation(
        "of several gateways some may be spoken to in clear text",
        "store/hbase/addresses.py",
        "{address.transport for address in addresses}",
        "{address.framed for address in addresses}",
        "unit/store/test_gateway_addresses.py::test_the_transport_is_told_with_the_address",
    ),
    Mutation(
        "a session's tickets end a connection of TLS",
        "store/hbase/connection.py",
        "self._has_nothing_to_say() if self.address.tls else",
        "",
        _TLS + "test_a_connection_is_used_again_though_tls_has_spoken_in_between",
    ),
    Mutation(
        "the rest of a lost answer is taken for a session's tickets",
        "store/hbase/connection.py",
        "        return False\n\n    @contextmanager",
        "        return True\n\n    @contextmanager",
        _TLS + "test_what_is_left_of_a_lost_answer_is_no_ticket",
    ),
    Mutation(
        "a look between two requests leaves a connection that waits for nothing",
        "store/hbase/connection.py",
        "            self._connected.settimeout(self._settings.request_timeout_ms / 1_000)\n",
        "            pass\n",
        _TLS + "test_a_connection_is_used_again_though_tls_has_spoken_in_between",
    ),
    Mutation(
        "files that are being replaced are an error of the program",
        "access/service_tls.py",
        "    except BadTls as error:\n        raise ConnectionError(str(error)) from error\n",
        "    except BadTls:\n        raise\n",
        _TLS + "test_files_are_read_again_for_each_connection",
    ),
    Mutation(
        "of the protections that a gateway offers the weakest is taken",
        "access/sasl.py",
        "self.layer = spoken[-1]",
        "self.layer = spoken[0]",
        _SASL + "test_the_strongest_layer_that_is_offered_is_taken",
    ),
    Mutation(
        "a gateway may end the talk before it has shown who it is",
        "store/hbase/sasl.py",
        "        if status is not (Status.OK if",
        "        if status is Status.COMPLETE:\n            self.is_done = True\n            return b''\n"
        "        if status is not (Status.OK if",
        _SASL + "test_nothing_is_agreed_on_before_the_gateway_has_shown_who_it_is",
    ),
    Mutation(
        "an answer that was to be encrypted may come as it likes",
        "store/hbase/sasl.py",
        "self._context.unwrap(token, confidential=self._confidential)",
        "token[5:] if self._confidential else self._context.unwrap(token, confidential=False)",
        _SASL + "test_a_frame_that_is_not_sealed_as_agreed_on_is_an_error",
    ),
    Mutation(
        "a request is sealed and not encrypted",
        "store/hbase/sasl.py",
        "self._context.wrap(part, confidential=self._confidential)",
        "self._context.wrap(part, confidential=False)",
        _KERBEROS + "test_cells_are_read_and_written",
    ),
    Mutation(
        "a request goes in frames that are larger than the gateway takes",
        "store/hbase/sasl.py",
        "max(1, sent_bytes_max - _SEAL_BYTES_MAX)",
        "2**24",
        _KERBEROS + "test_a_request_goes_in_parts_that_the_gateway_takes",
    ),
    Mutation(
        "what a gateway sent past the end of the talk is left to the first answer",
        "store/hbase/sasl.py",
        "if self.is_done and self._received:",
        "if False:",
        _SASL + "test_bytes_after_the_end_are_nobodys",
    ),
    Mutation(
        "whoever names a key for Kerberos and no address of it is led past Kerberos",
        "access/kerberos.py",
        'found.unspoken(service, "asks for Kerberos", KERBEROS)',
        '""',
        _KERBEROS + "test_what_is_for_kerberos_is_refused_where_no_address_says_so",
    ),
    Mutation(
        "whoever answers by HTTP is believed, whoever that is",
        "store/hbase/http.py",
        "        if not context.is_complete:\n",
        "        if False:\n",
        _HTTP + "test_an_answer_of_somebody_else_is_not_believed",
    ),
    Mutation(
        "a proof that proves nothing is taken for one",
        "store/hbase/http.py",
        "(binascii.Error, KerberosFailure) as error:\n            raise ConnectionError(",
        "(binascii.Error, KerberosFailure) as error:\n            return\n            raise ConnectionError(",
        _HTTP + "test_an_answer_of_somebody_else_is_not_believed",
    ),
    Mutation(
        "an answer of HTTP that says that it failed is read as one of HBase's",
        "store/hbase/http.py",
        "        if response.status_code != _FINE:\n",
        "        if False:\n",
        _HTTP + "test_what_it_says_of_a_failure_is_told",
    ),
    Mutation(
        "a connection on which the gateway takes no more requests is gone on with",
        "store/hbase/http.py",
        "        else:\n            self.is_over = True\n",
        "        else:\n            pass\n",
        _HTTP + "test_who_says_that_it_takes_no_more_is_asked_nothing_more",
    ),
    Mutation(
        "a KDC that does not answer is waited for as long as the library likes",
        "access/kdc.py",
        ".result(limit_ms / 1_000)",
        ".result()",
        _KERBEROS + "test_a_kdc_that_does_not_answer_is_waited_for_for_a_limited_time",
    ),
    Mutation(
        "any number of threads waits for a KDC that does not answer",
        "access/kdc.py",
        ">= WAITING_FOR_KDC_MAX:",
        ">= 10**9:",
        _KERBEROS + "test_a_kdc_that_does_not_answer_is_waited_for_for_a_limited_time",
    ),
]
