"""The bugs that test_plants.py plants in copies of the engine: where, what, and which check and which test must see them."""

from dataclasses import dataclass

ANSWERS = "test_oracle.py::test_every_arm_answers_as_the_plain_loop[10]"
OVERLAP = "test_oracle.py::test_order_is_behaviour_where_predicates_overlap"
CHECKSUM = "test_oracle.py::test_every_loop_feeds_the_documented_checksum"
CONTROLS = "test_oracle.py::test_controls_do_what_they_say"
PROBES = "test_measure.py::test_counted_probes_are_those_of_the_enumeration"
LITERAL = "test_measure.py::test_the_reference_is_the_oracle"
BLOCKS = "test_measure.py::test_every_block_gives_the_checksum_of_its_own_packets"
ALTERED = "test_measure.py::test_a_packet_altered_under_the_loop_is_noticed"
STOP = "test_measure.py::test_a_request_to_stop_is_never_lost"
ONE_SUM = "test_mechanism.py::test_all_mechanisms_give_one_checksum"
STATE = "test_mechanism.py::test_each_handler_changes_its_own_state_and_no_other"
SHARED = "test_mechanism.py::test_two_plain_handlers_of_one_key_are_decided_by_the_list"
LOW_BITS = "test_mechanism.py::test_keys_that_agree_in_their_low_bits_all_have_a_slot"
LANES = "test_mechanism.py::test_the_formula_of_lanes_by_hand"
MANY = "test_past.py::test_every_new_arm_answers_each_case_as_the_oracle_does[10]"
LENGTHS = "test_past.py::test_a_batch_of_every_length_from_1_to_4096_answers_as_the_oracle_does"
TAILS = "test_past.py::test_a_last_batch_that_is_not_full_loses_nothing"
VECTORS = "test_past.py::test_vectors_of_every_width_and_every_tail_answer_as_the_oracle_does"
COLLIDE = "test_past.py::test_tables_find_keys_that_collide_and_no_others"
REMEMBERED = "test_past.py::test_what_is_remembered_is_never_used_for_a_key_with_residual_predicates"
GROUPS = "test_oracle.py::test_order_is_behaviour_where_predicates_overlap[table-grouped-64]"
LEARNED = "test_past.py::test_whatever_has_been_learned_the_answers_stay"
MASK = "test_measure.py::test_the_cpus_allowed_before_are_allowed_afterwards"


@dataclass(frozen=True)
class Plant:
    name: str
    file: str
    old: str
    new: str
    check: str
    """A check that must fail; others may as well."""
    test: str
    """A test that must fail."""


PLANTS = [
    Plant(
        "residual list skipped", "core/arms/table.h",
        "for (size_t i = 0; i < count; ++i)", "for (size_t i = count; i < count; ++i)", "answers", ANSWERS,
    ),
    Plant(
        "last handler dropped", "core/arms/list.c",
        "list->count = set->count;", "list->count = set->count - 1;", "orders", ANSWERS,
    ),
    Plant(
        "unmatched gets an answer", "core/arms/list.h",
        "return DL_UNMATCHED;", "return DL_UNMATCHED + 1;", "answers", "test_oracle.py::test_unmatched_packets_get_zero",
    ),
    Plant(
        "order of overlapping handlers lost by sorting", "core/arms/scan_ordered.c",
        "  restore_order_of_overlapping(list, setup->set);", "  (void)restore_order_of_overlapping;",
        "order-is-behaviour", OVERLAP,
    ),
    Plant(
        "overlapping handlers pass each other", "core/arms/scan_mtf.c",
        "if (!(h->overlaps && before->overlaps && h->key == before->key)) {", "if (before != NULL) {",
        "order-is-behaviour", OVERLAP,
    ),
    Plant(
        "promotion loses a handler", "core/arms/scan_mtf.c",
        "list->handlers[i] = before;", "list->handlers[i] = h;", "answers", ANSWERS,
    ),
    Plant(
        "rarest first", "core/arms/scan_ordered.c",
        "frequency[list->handlers[at - 1]->index] < frequency[h->index]",
        "frequency[list->handlers[at - 1]->index] > frequency[h->index]", "probes", PROBES,
    ),
    Plant(
        "collision ignored: the key is not verified", "core/arms/compact.h",
        "s->key != key", "((s->key ^ key) & (int32_t)table->mask) != 0", "answers", ANSWERS,
    ),
    Plant(
        "collision ignored: nothing walks", "core/arms/compact.h",
        "    if (s->key == DL_COMPACT_EMPTY) return NULL;\n", "    return NULL;\n", "answers", ANSWERS,
    ),
    Plant(
        "growing the table loses a key", "core/arms/compact.c",
        "for (size_t i = 0; i < index->key_count; ++i) {", "for (size_t i = size > SMALLEST; i < index->key_count; ++i) {",
        "answers", ANSWERS,
    ),
    Plant(
        "key index stops at the first candidate", "core/arms/table.c",
        "    if (h->mask == 0) return;\n", "    return;\n", "answers", ANSWERS,
    ),
    Plant(
        "handler computes something else", "core/bodies/chain.inc",
        "h ^= h >> 29; ", "h ^= h >> 30; ", "bodies-by-formula",
        "test_oracle.py::test_the_formula_of_chain_by_hand",
    ),
    Plant(
        "direct-call calls another handler", "core/arms/direct_call.c",
        "direct_loops[i].loops, 0, NULL}", "direct_loops[0].loops, 0, NULL}", "answers", CONTROLS,
    ),
    Plant(
        "probe not counted", "core/arms/list.h",
        "    dl_probe(probes);\n", "    if (i > 0) dl_probe(probes);\n", "published-probes", PROBES,
    ),
    Plant(
        "checksum blind to order", "core/checksum.h",
        "c->weight += DL_CHECKSUM_STEP;", "c->weight += 0 * DL_CHECKSUM_STEP;", "checksum-sees", CHECKSUM,
    ),
    Plant(
        "checksum blind to the lowest bit", "core/checksum.h",
        "(uint64_t)result * c->weight", "(uint64_t)(result & ~1u) * c->weight", "checksum-formula", CHECKSUM,
    ),
    Plant(
        "one code placement leaves out a packet", "core/arm_loop.inc",
        "for (size_t i = 0; i < n; ++i) DL_SUM_DO(_feed)(&sum, DL_DISPATCH(&state, &packets[i], NULL));",
        "for (size_t i = shift == 4000; i < n; ++i) DL_SUM_DO(_feed)(&sum, DL_DISPATCH(&state, &packets[i], NULL));",
        "checksum-formula", CHECKSUM,
    ),
    Plant(
        "window off by one", "core/measure.c",
        "slot->packets + window * chunk", "slot->packets + window * (chunk - 1)", "timed-blocks", BLOCKS,
    ),
    Plant(
        "wrong block not counted", "core/measure.c",
        "out->mismatches[s] += sum != passes * slot->expected[window];",
        "(void)(sum != passes * slot->expected[window]);",
        "wrong-blocks-are-counted", ALTERED,
    ),
    Plant(
        "reference ignores residual predicates", "core/handlers.c",
        "if (packet->key == h->key && (packet->payload[0] & h->mask) == h->value) return h;",
        "if (packet->key == h->key) return h;", "reference", LITERAL,
    ),
    Plant(
        "request to stop lost at the end of a round", "core/measure.c",
        "    *stopped = !may_go_on(plan, round);\n    if (*stopped) return position + 1 == plan->slot_count;",
        "    if (!may_go_on(plan, round)) return (*stopped = position + 1 < plan->slot_count) == 0;",
        "stopping", STOP,
    ),
    Plant(
        "the thread stays pinned", "binding/measure.c",
        "restored = dl_affinity_restore(&saved);", "restored = DL_OK;", "the-machine-is-put-back", MASK,
    ),
    Plant(
        "virtual calls the vtable beside its own", "core/arms/virtual.c",
        "object->vtable->process(object, packet)", "object->vtable[object->index == 7].process(object, packet)",
        "answers", ONE_SUM,
    ),
    Plant(
        "erasure keeps the object of another handler", "core/arms/erasure.c",
        "(entry){object, object->process}", "(entry){setup->set->objects[i / 2], object->process}",
        "state-is-its-own", STATE,
    ),
    Plant(
        "inline state is not given back", "core/arms/erasure_inline.c",
        "state[w] += entries[i].state[w];", "state[w] += 0 * entries[i].state[w];", "state-is-its-own", STATE,
    ),
    Plant(
        "two cases of the static switch swapped", "core/arms/static.inc",
        "switch (choice->index)", "switch (choice->index < 2 ? 1 - choice->index : choice->index)", "answers", ONE_SUM,
    ),
    Plant(
        "variant trusts the table instead of the tag", "core/arms/variant.inc",
        "switch (object->index)", "switch (choice->index & 63)", "answers", ONE_SUM,
    ),
    Plant(
        "a guard calls its neighbour", "core/arms/guarded.inc",
        "return DL_NAMED(i)(object, packet);", "return DL_NAMED(0)(object, packet);", "answers", ONE_SUM,
    ),
    Plant(
        "a label leads to the next one", "core/arms/computed_goto.inc",
        "goto *labels[choice->index];", "goto *labels[choice->index ^ 1];", "answers", ONE_SUM,
    ),
    Plant(
        "the key of a mechanism's slot is not verified", "core/arms/choice.h",
        "DL_LIKELY(choice->key == packet->key)", "DL_LIKELY(choice->target != NULL)", "answers",
        "test_oracle.py::test_unmatched_packets_get_zero[0]",
    ),
    Plant(
        "two keys in one slot", "core/arms/choice.c",
        "if (slot->target != NULL) return false;", "if (slot->target != NULL) continue;", "answers", LOW_BITS,
    ),
    Plant(
        "of two handlers with one key the last wins", "core/arms/choice.c",
        "if (slot->target != NULL && slot->key == h->key) continue;",
        "if (slot->target != NULL && slot->key == h->key) slot->target = NULL;", "answers", SHARED,
    ),
    Plant(
        "a lane is rotated the other way", "core/bodies/lanes.h",
        "(x << by) | (x >> (64 - by))", "(x >> by) | (x << (64 - by))", "bodies-by-formula", LANES,
    ),
    Plant(
        "a piece of branchy is left out", "core/bodies/branchy.inc",
        "PIECE(i, 1, out) PIECE(i, 0, L1)", "PIECE(i, 1, out) PIECE(i, 0, out)", "bodies-by-formula", LANES,
    ),
    Plant(
        "a state is shared with a neighbour", "core/handlers.c",
        "i * step % set->count : i) * stride", "i * step % set->count : i / 2) * stride", "state-is-its-own", STATE,
    ),
    Plant(
        "a batch forgets its first packet", "core/arms/table_grouped.inc",
        "for (size_t i = n; i-- > 0;) {", "for (size_t i = n; --i > 0;) {", "answers", LENGTHS,
    ),
    Plant(
        "a group keeps only its first packet", "core/arms/table_grouped.inc",
        "    next[i] = behind;\n", "    next[i] = END;\n    (void)behind;\n", "answers", MANY,
    ),
    Plant(
        "a group is not closed after its batch", "core/arms/table_grouped.inc",
        "    first[group] = END;\n", "    if (group % 8 != 1) first[group] = END;\n", "answers", MANY,
    ),
    Plant(
        "a group goes to its neighbour", "core/arms/table_grouped.inc",
        "state->objects[group - 1];", "state->objects[group > 1 ? group - 2 : 0];", "answers", MANY,
    ),
    Plant(
        "of a residual list in a batch the last match wins", "core/arms/table_grouped.inc",
        "  for (size_t i = 0; i < s->count; ++i) {\n    dl_probe(probes);",
        "  for (size_t i = s->count; i-- > 0;) {\n    dl_probe(probes);", "order-is-behaviour", GROUPS,
    ),
    Plant(
        "a run takes the next packet along", "core/arms/table_runs.inc",
        "for (++i; i < n && packets[i].key == key;) ++i;", "for (++i; i < n && (packets[i].key ^ key) < 2;) ++i;",
        "answers", MANY,
    ),
    Plant(
        "the rest of a batch is not fed", "core/arms/batch_loop.inc",
        "    answer(state, packets + done, m, out, NULL);\n    FEED_BATCH(m);\n  }\n}\n\nDL_INLINE void one_by_one",
        "    answer(state, packets + done, m, out, NULL);\n    if (m == DL_BATCH) FEED_BATCH(m);\n"
        "  }\n}\n\nDL_INLINE void one_by_one",
        "checksum-formula", TAILS,
    ),
    Plant(
        "falling back leaves out a packet", "core/arms/batch_loop.inc",
        "for (size_t i = 0; i < n; ++i) dl_checksum_feed(sum, dispatch(state, &packets[i]));",
        "for (size_t i = 1; i < n; ++i) dl_checksum_feed(sum, dispatch(state, &packets[i]));", "timed-blocks", LEARNED,
    ),
    Plant(
        "the last key of the vectors is left out", "core/arms/scan_simd.inc",
        "equal &= list->tail;", "equal &= list->tail >> 1;", "answers", VECTORS,
    ),
    Plant(
        "a vector's residual predicate is not asked", "core/arms/scan_simd.inc",
        "if (!h->matches(h, packet)) continue;", "(void)0;", "answers", VECTORS,
    ),
    Plant(
        "open addressing does not walk", "core/arms/hash.c",
        "if (s->key == DL_COMPACT_EMPTY) return DL_UNMATCHED;", "return DL_UNMATCHED;", "answers", COLLIDE,
    ),
    Plant(
        "a chain ends after its first node", "core/arms/hash_chained.c",
        "n != NULL; n = n->next)\n    if", "n != NULL; n = NULL)\n    if", "answers", COLLIDE,
    ),
    Plant(
        "halving loses the upper end", "core/arms/binary_search.c",
        "left -= half;", "left = half;", "answers", COLLIDE,
    ),
    Plant(
        "a perfect slot is not verified", "core/arms/perfect_hash.c",
        "if (s->key != packet->key) return DL_UNMATCHED;", "if (s->key == DL_COMPACT_EMPTY) return DL_UNMATCHED;", "answers", COLLIDE,
    ),
    Plant(
        "residual decisions are remembered", "core/arms/cache_last.inc",
        "if (!m->decides[h->index]) return h->process(h, packet);", "(void)m->decides;", "answers", REMEMBERED,
    ),
    Plant(
        "a favourite's call goes to the next", "core/arms/top_n.c",
        "return state->top[i].process(state->top[i].handler, packet);",
        "return state->top[0].process(state->top[0].handler, packet);", "answers", MANY,
    ),
    Plant(
        "a case of the switch calls another handler", "core/arms/switch.inc",
        "return DL_NAMED(i)(state->cases[i], packet);", "return DL_NAMED(0)(state->cases[i], packet);", "answers", MANY,
    ),
]  # fmt: skip


# --- building ------------------------------------------------------------------------------------------------------
