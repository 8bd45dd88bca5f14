/* The timing loop and the reference it is held against. */
#include "measure.h"

enum { MOST_TOUCHED = 512 * 1024 };

/* Reads a byte of every cache line of the block, so that it costs no slot more than another to be the first of a round that
 * sees these packets. Not where the block is larger than what a core's own caches hold: there memory is what is measured. */
static void touch(const dl_packet *packets, size_t n) {
  if (n * sizeof *packets > MOST_TOUCHED) return;
  for (size_t at = 0; at < n; at += DL_CACHE_LINE / sizeof *packets) (void)*(const volatile uint16_t *)&packets[at].key;
}

/* Puts caches and predictors into the state in which this slot had been running all along: whatever ran before it, it
 * finds its own code warm, and other packets than those of the block in the predictor's memory. */
static void lead_in(const dl_slot *slot, uint64_t (*timed)(void *, const dl_packet *, size_t), size_t start, size_t lead) {
  if (lead > slot->packet_count) lead = slot->packet_count;
  if (lead == 0) return;
  const size_t first = start >= lead ? start - lead : slot->packet_count - lead;
  (void)timed(slot->state, slot->packets + first, lead);
}

/* One slot's block. The clock is read right around the loop; everything else happens before or after. A pool smaller than
 * the block is run several times over, so that every slot still dispatches the same number of packets. */
static void run_block(const dl_plan *plan, size_t s, size_t round, dl_measured *out) {
  const dl_slot *slot = &plan->slots[s];
  const size_t chunk = plan->block < slot->packet_count ? plan->block : slot->packet_count;
  const size_t passes = plan->block / chunk;
  const size_t window = ((size_t)plan->window[round] + (size_t)plan->shift[s]) % (slot->packet_count / chunk);
  const dl_packet *packets = slot->packets + window * chunk;
  uint64_t (*const timed)(void *, const dl_packet *, size_t) = slot->loops->timed[plan->placement[round]];
  uint64_t sum = 0;

  touch(packets, chunk);
  lead_in(slot, timed, window * chunk, plan->lead);
  const uint64_t begin = dl_ticks_begin();
  for (size_t pass = 0; pass < passes; ++pass) sum += timed(slot->state, packets, chunk);
  uint64_t end = dl_ticks_end();
  out->undelayed[round * plan->slot_count + s] = (int64_t)(end - begin);
  if (slot->delay_ppm > 0) {
    const uint64_t wanted = end + (end - begin) * (uint64_t)slot->delay_ppm / 1000000u;
    uint64_t step = 0;
    while (end + step / 2 < wanted) { /* half a step early and half a step late even out */
      const uint64_t now = dl_ticks_end();
      step = now - end;
      end = now;
    }
  }
  out->mismatches[s] += sum != passes * slot->expected[window];
  out->ticks[round * plan->slot_count + s] = (int64_t)(end - begin);
}

static bool may_go_on(const dl_plan *plan, size_t rounds_done) {
  return plan->hook == NULL || plan->hook(plan->context, rounds_done);
}

/* Runs a round up to the block after which the hook asks to stop. True when the round is whole. */
static bool run_round(const dl_plan *plan, size_t round, dl_measured *out, bool *stopped) {
  for (size_t position = 0; position < plan->slot_count; ++position) {
    run_block(plan, (size_t)plan->order[round * plan->slot_count + position], round, out);
    *stopped = !may_go_on(plan, round);
    if (*stopped) return position + 1 == plan->slot_count; /* the round is whole, or lost */
  }
  return true;
}

dl_status dl_measure(const dl_plan *plan, dl_measured *out) {
  dl_ledger ledger;
  dl_ledger_sample before, after;
  bool stopped = false;
  out->rounds_done = 0;
  dl_status status = dl_ledger_open(&ledger, plan->cpu);
  if (status != DL_OK) return status;
  dl_ledger_read(&ledger, &before);
  for (size_t round = 0; round < plan->rounds && !stopped; ++round) {
    if (!run_round(plan, round, out, &stopped)) break;
    dl_ledger_read(&ledger, &after);
    dl_ledger_row(&before, &after, plan->ticks_per_ns, &out->ledger[round * DL_LEDGER_COLUMNS]);
    before = after;
    ++out->rounds_done;
  }
  dl_ledger_close(&ledger);
  return stopped && out->rounds_done < plan->rounds ? DL_STOPPED : DL_OK;
}

static dl_result reference(const dl_handler_set *set, dl_answers answers, const dl_packet *packet, int32_t *selected) {
  const dl_handler *handler = NULL;
  if (answers == DL_ANSWERS_LIST) handler = dl_reference_select(set, packet);
  if (answers == DL_ANSWERS_HANDLER_0) handler = set->objects[0];
  *selected = handler == NULL ? -1 : (int32_t)handler->index;
  if (answers == DL_ANSWERS_KEY || answers == DL_ANSWERS_KEY_SERIAL) return packet->key;
  return handler == NULL ? DL_UNMATCHED : handler->process(handler, packet);
}

void dl_reference_results(const dl_handler_set *set, dl_answers answers, const dl_packet *packets, size_t n,
                          int32_t *selected, dl_result *results) {
  int32_t index;
  for (size_t i = 0; i < n; ++i) {
    const dl_result result = reference(set, answers, &packets[i], &index);
    if (selected != NULL) selected[i] = index;
    if (results != NULL) results[i] = result;
  }
}

void dl_expected_checksums(const dl_handler_set *set, dl_answers answers, const dl_packet *packets, size_t packet_count,
                           size_t chunk, uint64_t *expected) {
  int32_t index;
  for (size_t w = 0; w < packet_count / chunk; ++w) {
    dl_checksum sum = dl_checksum_start();
    dl_fnv1a serial = dl_fnv1a_start();
    for (size_t i = 0; i < chunk; ++i) {
      const dl_result result = reference(set, answers, &packets[w * chunk + i], &index);
      dl_checksum_feed(&sum, result);
      dl_fnv1a_feed(&serial, result);
    }
    expected[w] = answers == DL_ANSWERS_KEY_SERIAL ? dl_fnv1a_end(&serial) : dl_checksum_end(&sum);
  }
}
