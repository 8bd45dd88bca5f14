/* measure(): hands a plan to the timing loop with the GIL released, stays interruptible, keeps whole rounds. */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "slot.h"

/* How often the hook takes the GIL to look for signals and to report progress. */
#define HOOK_EVERY_NS 25e6

typedef struct hook_state {
  PyThreadState *thread; /* released while the loop runs */
  PyObject *progress;    /* callable(rounds_done) or NULL */
  uint64_t next;         /* ticks at which to look again */
  uint64_t every;
} hook_state;

static bool hook(void *context, size_t rounds_done) {
  hook_state *state = context;
  if (dl_ticks_end() < state->next) return true;
  PyEval_RestoreThread(state->thread);
  bool go_on = PyErr_CheckSignals() == 0;
  if (go_on && state->progress != NULL) {
    PyObject *answer = PyObject_CallFunction(state->progress, "n", (Py_ssize_t)rounds_done);
    go_on = answer != NULL;
    Py_XDECREF(answer);
  }
  state->thread = PyEval_SaveThread();
  state->next = dl_ticks_end() + state->every;
  return go_on;
}

enum { VIEWS = 4 };

typedef struct arguments {
  PyObject *slots;
  PyObject *buffers[VIEWS]; /* order, placement, window, shift */
  Py_buffer views[VIEWS];
  Py_ssize_t block;
  Py_ssize_t rounds;
  Py_ssize_t lead;
  int cpu;
  double ticks_per_ns;
  PyObject *progress;
} arguments;

static int check_order(const arguments *a, Py_ssize_t slots) {
  const int16_t *order = a->views[0].buf;
  const int8_t *placement = a->views[1].buf;
  const int32_t *window = a->views[2].buf, *shift = a->views[3].buf;
  for (Py_ssize_t i = 0; i < a->rounds * slots; ++i)
    if (order[i] < 0 || order[i] >= slots) return -1;
  for (Py_ssize_t i = 0; i < a->rounds; ++i)
    if (placement[i] < 0 || placement[i] >= DL_PLACEMENTS || window[i] < 0) return -1;
  for (Py_ssize_t i = 0; i < slots; ++i)
    if (shift[i] < 0) return -1;
  return 0;
}

static int get_views(arguments *a, Py_ssize_t slots, int *held) {
  static const char *const names[VIEWS] = {"order", "placement", "window", "shift"};
  const Py_ssize_t widths[VIEWS] = {sizeof(int16_t), sizeof(int8_t), sizeof(int32_t), sizeof(int32_t)};
  const Py_ssize_t items[VIEWS] = {a->rounds * slots, a->rounds, a->rounds, slots};
  for (; *held < VIEWS; ++*held)
    if (dl_get_buffer(a->buffers[*held], names[*held], widths[*held], items[*held], &a->views[*held]) < 0) return -1;
  if (check_order(a, slots) == 0) return 0;
  dl_raise(DL_BAD_ARGUMENT, "measure: order, placement, window or shift holds a number outside its range");
  return -1;
}

/* Checksums that the blocks of a slot must give; the caller frees. NULL with an exception. */
static uint64_t *expected_of(const dl_py_slot *slot, Py_ssize_t block) {
  const Py_ssize_t chunk = block < slot->count ? block : slot->count;
  if (chunk < 1 || block % chunk != 0) {
    dl_raise(DL_BAD_ARGUMENT, "measure: a block must hold a packet or more, and a smaller pool a whole number of times");
    return NULL;
  }
  uint64_t *expected = malloc((size_t)(slot->count / chunk) * sizeof *expected);
  if (expected == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS
  dl_expected_checksums(DL_SLOT_SET(slot), slot->arm->answers, DL_SLOT_PACKETS(slot), (size_t)slot->count,
                        (size_t)chunk, expected);
  Py_END_ALLOW_THREADS
  return expected;
}

/* Slots over the same handlers, packets and kind of answer share one array of expected checksums. */
static const uint64_t *shared_expected(PyObject *slots, dl_slot *out, Py_ssize_t i) {
  const dl_py_slot *slot = (dl_py_slot *)PyTuple_GetItem(slots, i);
  for (Py_ssize_t j = 0; j < i; ++j) {
    const dl_py_slot *other = (dl_py_slot *)PyTuple_GetItem(slots, j);
    if (other->set == slot->set && other->packets.buf == slot->packets.buf && other->count == slot->count &&
        other->arm->answers == slot->arm->answers)
      return out[j].expected;
  }
  return NULL;
}

static void free_slots(dl_slot *slots, Py_ssize_t count) {
  for (Py_ssize_t i = 0; slots != NULL && i < count; ++i) {
    bool shared = false;
    for (Py_ssize_t j = 0; j < i; ++j) shared = shared || slots[j].expected == slots[i].expected;
    if (!shared) free((void *)slots[i].expected);
    else slots[i].expected = NULL;
  }
  free(slots);
}

static dl_slot *make_slots(PyObject *module, const arguments *a, Py_ssize_t count) {
  dl_module_state *state = PyModule_GetState(module);
  dl_slot *out = calloc((size_t)count, sizeof *out);
  if (out == NULL) return (dl_slot *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *object = PyTuple_GetItem(a->slots, i);
    if (!Py_IS_TYPE(object, state->slot_type)) {
      PyErr_SetString(PyExc_TypeError, "measure: slots must be a tuple of Slot");
      goto failed;
    }
    const dl_py_slot *slot = (dl_py_slot *)object;
    const uint64_t *expected = shared_expected(a->slots, out, i);
    if (expected == NULL) expected = expected_of(slot, a->block);
    if (expected == NULL) goto failed;
    out[i] = (dl_slot){slot->prepared.loops, slot->prepared.state, DL_SLOT_PACKETS(slot), (size_t)slot->count,
                       expected, slot->delay_ppm};
  }
  return out;
failed:
  free_slots(out, count);
  return NULL;
}

/* Pins, runs, unpins; the GIL is released for all of it. Sets an exception when the CPU is not one of the allowed. */
static dl_status run(const arguments *a, const dl_plan *plan, dl_measured *out, hook_state *state) {
  dl_affinity saved;
  state->thread = PyEval_SaveThread();
  dl_status pinned = dl_affinity_save(&saved);
  if (pinned != DL_OK) goto released;
  dl_status status = pinned = a->cpu < 0 ? DL_OK : dl_affinity_pin(&saved, a->cpu);
  if (pinned == DL_OK) {
    state->next = dl_ticks_end() + state->every;
    status = dl_measure(plan, out);
  }
  PyEval_RestoreThread(state->thread);
  if (pinned == DL_BAD_ARGUMENT) dl_raise_cpu(&saved, a->cpu);
  const dl_status restored = dl_affinity_restore(&saved);
  return status == DL_OK ? restored : status;
released:
  PyEval_RestoreThread(state->thread);
  return pinned;
}

static PyObject *to_bytes(const void *data, size_t bytes) {
  return PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes);
}

static PyObject *mismatch_list(const int64_t *mismatches, Py_ssize_t slots) {
  PyObject *list = PyList_New(slots);
  for (Py_ssize_t i = 0; list != NULL && i < slots; ++i) {
    PyObject *n = PyLong_FromLongLong(mismatches[i]);
    if (n == NULL || PyList_SetItem(list, i, n) < 0) Py_CLEAR(list);
  }
  return list;
}

static PyObject *outcome(Py_ssize_t slots, dl_status status, const dl_measured *m) {
  bool interrupted = false;
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) return NULL;
    PyErr_Clear();
    interrupted = true;
  }
  if (status != DL_OK && status != DL_STOPPED) return dl_raise(status, NULL);
  return Py_BuildValue("{snsNsNsNsNsO}", "rounds", (Py_ssize_t)m->rounds_done, "ticks",
                       to_bytes(m->ticks, m->rounds_done * (size_t)slots * sizeof *m->ticks), "undelayed",
                       to_bytes(m->undelayed, m->rounds_done * (size_t)slots * sizeof *m->undelayed), "ledger",
                       to_bytes(m->ledger, m->rounds_done * DL_LEDGER_COLUMNS * sizeof *m->ledger), "mismatches",
                       mismatch_list(m->mismatches, slots), "interrupted", interrupted ? Py_True : Py_False);
}

static PyObject *measure_parsed(PyObject *module, arguments *a) {
  const Py_ssize_t count = PyTuple_Size(a->slots);
  int held = 0;
  PyObject *result = NULL;
  dl_slot *slots = NULL;
  dl_measured out = {0};
  hook_state state = {.progress = a->progress == Py_None ? NULL : a->progress,
                      .every = (uint64_t)(HOOK_EVERY_NS * a->ticks_per_ns)};

  if (get_views(a, count, &held) < 0) goto done;
  slots = make_slots(module, a, count);
  if (slots == NULL) goto done;
  out.ticks = calloc((size_t)(a->rounds * count) + 1, sizeof *out.ticks);
  out.undelayed = calloc((size_t)(a->rounds * count) + 1, sizeof *out.undelayed);
  out.ledger = calloc((size_t)a->rounds * DL_LEDGER_COLUMNS + 1, sizeof *out.ledger);
  out.mismatches = calloc((size_t)count + 1, sizeof *out.mismatches);
  if (out.ticks == NULL || out.undelayed == NULL || out.ledger == NULL || out.mismatches == NULL) {
    PyErr_NoMemory();
    goto done;
  }
  const dl_plan plan = {
      .slots = slots, .slot_count = (size_t)count, .block = (size_t)a->block, .rounds = (size_t)a->rounds,
      .order = a->views[0].buf, .placement = a->views[1].buf, .window = a->views[2].buf, .shift = a->views[3].buf,
      .lead = (size_t)a->lead, .cpu = a->cpu,
      .ticks_per_ns = a->ticks_per_ns, .hook = hook, .context = &state};
  const dl_status status = run(a, &plan, &out, &state);
  result = outcome(count, status, &out);
done:
  free(out.ticks);
  free(out.undelayed);
  free(out.ledger);
  free(out.mismatches);
  free_slots(slots, count);
  while (held > 0) PyBuffer_Release(&a->views[--held]);
  return result;
}

static PyObject *measure(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"slots", "block", "rounds", "order", "placement", "window", "shift", "lead", "cpu", "ticks_per_ns", "progress", NULL};
  arguments a = {.progress = Py_None};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!nnOOOOnid|O", names, &PyTuple_Type, &a.slots, &a.block, &a.rounds,
                                   &a.buffers[0], &a.buffers[1], &a.buffers[2], &a.buffers[3], &a.lead, &a.cpu, &a.ticks_per_ns, &a.progress))
    return NULL;
  if (a.rounds < 0 || a.lead < 0 || PyTuple_Size(a.slots) < 1 || !(a.ticks_per_ns > 0))
    return dl_raise(DL_BAD_ARGUMENT, "measure: needs a slot, a clock rate above 0 and a number of rounds that is not negative");
  return measure_parsed(module, &a);
}

static PyObject *ledger_columns(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < DL_LEDGER_COLUMNS; ++i) {
    PyObject *name = PyUnicode_FromString(dl_ledger_names[i]);
    if (name == NULL || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

PyMethodDef dl_measure_methods[] = {
    {"slot", (PyCFunction)(void (*)(void))dl_slot_create, METH_VARARGS | METH_KEYWORDS, NULL},
    {"measure", (PyCFunction)(void (*)(void))measure, METH_VARARGS | METH_KEYWORDS, NULL},
    {"ledger_columns", ledger_columns, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
