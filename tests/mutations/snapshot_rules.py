"""Broken rules of named snapshots: what holds a vacuum back, and what is read by a name."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_AND_VACUUM = "unit/client_vacuum/test_vacuum_and_named_snapshots.py::"
_BY_THEMSELVES = "unit/client/snapshots/test_named_snapshots.py::"

SNAPSHOT_RULES = [
    Mutation(
        "a name is moved back, to what a vacuum has dropped",
        "client/snapshots/named.py",
        "        if timestamp < standing.timestamp:\n",
        "        if False:\n",
        _BY_THEMSELVES + "test_a_name_is_moved_forward_only",
    ),
    Mutation(
        "who moves a name takes the place of whoever had it meanwhile",
        "client/snapshots/named.py",
        "lambda stored: stored == standing, moved.encode()",
        "lambda stored: True, moved.encode()",
        _BY_THEMSELVES + "test_who_moves_a_name_that_is_not_what_it_was_is_told",
    ),
    Mutation(
        "a name is moved by dropping it and giving it again",
        "client/snapshots/named.py",
        "        moved = replace(standing, timestamp=timestamp, epoch=epoch)\n",
        "        moved = replace(standing, timestamp=timestamp, epoch=epoch)\n"
        "        self._replace(name, lambda stored: stored == standing, standing.encode_dropped())\n"
        "        self._replace(name, lambda stored: stored is None, standing.encode())\n",
        _AND_VACUUM + "test_a_vacuum_amid_the_move_of_a_name",
    ),
    Mutation(
        "a vacuum ignores named snapshots",
        "client/vacuum/plan.py",
        "    data = min([limits.data, *named])\n",
        "    data = limits.data\n",
        _AND_VACUUM + "test_a_name_holds_the_vacuum_back_until_it_is_dropped",
    ),
    Mutation(
        "a vacuum drops outcomes that a named snapshot may ask for",
        "client/vacuum/plan.py",
        "return Horizons(data, min(limits.outcomes, data))",
        "return Horizons(data, limits.outcomes)",
        _AND_VACUUM + "test_a_name_holds_the_vacuum_back_until_it_is_dropped",
    ),
    Mutation(
        "a vacuum does not announce how far it goes",
        "client/vacuum/run.py",
        "        manager.catalog.vacuums.announce(limits.data)\n",
        "",
        _AND_VACUUM + "test_a_creation_amid_the_vacuum",
    ),
    Mutation(
        "a vacuum does not look at the names again after it has announced itself",
        "client/vacuum/run.py",
        "        manager.catalog.vacuums.announce(limits.data)\n        named = _named(manager)\n",
        "        manager.catalog.vacuums.announce(limits.data)\n",
        _AND_VACUUM + "test_a_creation_amid_the_vacuum",
    ),
    Mutation(
        "a vacuum goes further than it has announced, since a name was dropped meanwhile",
        "client/vacuum/run.py",
        "        named = _named(manager)\n        limits = held_back(limits,",
        "        named = _named(manager)\n        limits = held_back(wanted,",
        _AND_VACUUM + "test_a_dropped_name_and_later_a_new_one_amid_the_vacuum",
    ),
    Mutation(
        "a vacuum announces more than a standing name lets it drop",
        "client/vacuum/run.py",
        "        manager.catalog.vacuums.announce(limits.data)\n",
        "        manager.catalog.vacuums.announce(wanted.data)\n",
        _AND_VACUUM + "test_a_name_above_what_an_older_one_holds_back_is_not_refused",
    ),
    Mutation(
        "a name is not re-checked after it was written",
        "client/snapshots/named.py",
        "        if timestamp < below:\n",
        "        if False:\n",
        _AND_VACUUM + "test_a_creation_amid_the_vacuum",
    ),
    Mutation(
        "the vacuum marks are looked at before the name is written",
        "client/snapshots/named.py",
        "        if not self._replace(name, _is_free, claimed.encode()):\n",
        "        seen = self._catalog.vacuums.below_anywhere()\n"
        "        self._catalog.vacuums.below_anywhere = lambda: seen  # type: ignore[method-assign]\n"
        "        if not self._replace(name, _is_free, claimed.encode()):\n",
        _AND_VACUUM + "test_every_order_of_their_calls",
    ),
    Mutation(
        "a name holds no vacuum back until it is finished",
        "client/snapshots/named.py",
        "for snapshot in found if snapshot is not None]",
        "for snapshot in found if snapshot is not None and snapshot.is_finished]",
        _AND_VACUUM + "test_a_vacuum_amid_the_creation",
    ),
    Mutation(
        "a name that was dropped or taken over meanwhile is finished",
        "client/snapshots/named.py",
        "self._replace(name, lambda stored: stored == claimed, finished.encode())",
        "self._replace(name, lambda stored: True, finished.encode())",
        _BY_THEMSELVES + "test_of_two_creators_one_wins_and_the_other_is_told",
    ),
    Mutation(
        "a name is given to another moment while it is in use",
        "client/snapshots/named.py",
        "    return stored is None or not stored.is_finished\n",
        "    return True\n",
        _BY_THEMSELVES + "test_a_name_is_given_once_until_it_is_dropped",
    ),
    Mutation(
        "a snapshot whose creation was not finished is read",
        "client/snapshots/named.py",
        "        if not found.is_finished:\n",
        "        if False:\n",
        _BY_THEMSELVES + "test_a_creation_that_arrives_after_it_was_given_up_is_not_finished",
    ),
    Mutation(
        "a creation that arrives late brings a dropped name back",
        "client/snapshots/record.py",
        "return _DROPPED + self.made.encode()",
        "return _DROPPED",
        _BY_THEMSELVES + "test_writes_that_arrive_late_neither_bring_a_name_back_nor_take_another_away",
    ),
    Mutation(
        "a drop takes a newer snapshot of the same name",
        "client/snapshots/named.py",
        "stored is not None and stored.made == made",
        "stored is not None",
        _BY_THEMSELVES + "test_a_drop_takes_one_that_is_finished_meanwhile_and_no_other_of_its_name",
    ),
    Mutation(
        "a named snapshot is read by an oracle's leave",
        "client/manager.py",
        "            return SnapshotHandle(named.timestamp, named.epoch, self.settings)\n",
        "            moment = named.timestamp\n"
        "            return SnapshotHandle(moment, self._past.settled(moment).epoch, self.settings)\n",
        _BY_THEMSELVES + "test_with_every_oracle_and_zookeeper_down_it_is_read_listed_and_dropped",
    ),
    Mutation(
        "a named snapshot does not know in which epoch it was found settled",
        "client/manager.py",
        "self._named.create(name, handle.timestamp, handle.epoch)",
        "self._named.create(name, handle.timestamp, 1)",
        _BY_THEMSELVES + "test_what_a_named_snapshot_did_not_show_never_comes_to_be",
    ),
]
