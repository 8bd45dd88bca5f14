/* The two-thread labs. One call is one round: threads are made, run and joined; the GIL is released for all of it, and an
 * interrupt joins the threads before it is raised. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

#include "labs.h"
#include "slot.h"

typedef struct hook_state {
  PyThreadState *thread; /* released while the threads run */
  uint64_t naps;
} hook_state;

static bool hook(void *context) {
  hook_state *state = context;
  if (++state->naps % 10 != 0) return true; /* every tenth nap: some 20 ms */
  PyEval_RestoreThread(state->thread);
  const bool go_on = PyErr_CheckSignals() == 0;
  state->thread = PyEval_SaveThread();
  return go_on;
}

/* CPUs out of a sequence into the lab; -1 with an exception. Each must be allowed; twice the same makes the lab shared. */
static int take_cpus(PyObject *sequence, dl_lab *lab, int32_t *cpus) {
  const Py_ssize_t n = PySequence_Size(sequence);
  if (n < 1 || n > DL_LAB_THREADS) {
    if (n >= 0) dl_raise(DL_BAD_ARGUMENT, "threads: expected 1 to 64");
    return -1;
  }
  dl_affinity saved;
  const dl_status status = dl_affinity_save(&saved);
  if (status != DL_OK) return dl_raise(status, NULL), -1;
  int32_t allowed[1024];
  const size_t known = dl_affinity_allowed(&saved, allowed, 1024);
  int result = 0;
  for (Py_ssize_t i = 0; i < n && result == 0; ++i) {
    PyObject *item = PySequence_GetItem(sequence, i);
    const long cpu = item == NULL ? -1 : PyLong_AsLong(item);
    Py_XDECREF(item);
    bool found = false;
    for (size_t j = 0; j < known && j < 1024; ++j) found = found || allowed[j] == cpu;
    for (Py_ssize_t j = 0; j < i; ++j) lab->shared = lab->shared || cpus[j] == cpu;
    cpus[i] = (int32_t)cpu;
    if (PyErr_Occurred()) result = -1;
    else if (!found) dl_raise_cpu(&saved, cpu), result = -1;
  }
  dl_affinity_free(&saved);
  lab->cpus = cpus;
  lab->threads = (size_t)n;
  return result;
}

/* Runs the lab; 0, or -1 with an exception. */
static int run(dl_lab *lab) {
  hook_state state = {PyEval_SaveThread(), 0};
  const dl_status status = dl_lab_run(lab, hook, &state);
  PyEval_RestoreThread(state.thread);
  if (PyErr_Occurred()) return -1;
  if (status != DL_OK) return dl_raise(status, NULL), -1;
  return 0;
}

/* An aligned, zeroed lab on the heap. */
static dl_lab *new_lab(dl_lab_body body, void *task) {
  dl_lab *lab = aligned_alloc(DL_APART, (sizeof *lab + DL_APART - 1) / DL_APART * DL_APART);
  if (lab == NULL) return (dl_lab *)PyErr_NoMemory();
  memset(lab, 0, sizeof *lab);
  lab->body = body;
  lab->task = task;
  return lab;
}

static PyObject *roundtrip(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *cpus;
  int32_t where[DL_LAB_THREADS];
  long long count;
  if (!PyArg_ParseTuple(args, "OL", &cpus, &count)) return NULL;
  if (count < 1 || PySequence_Size(cpus) != 2)
    return PyErr_Occurred() ? NULL : dl_raise(DL_BAD_ARGUMENT, "roundtrip: expected two CPUs and a count of 1 or more");
  dl_roundtrip task = {0, (uint64_t)count};
  dl_lab *lab = new_lab(dl_roundtrip_body, &task);
  PyObject *result = NULL;
  if (lab != NULL && take_cpus(cpus, lab, where) == 0 && run(lab) == 0) result = PyLong_FromLongLong(lab->elapsed);
  free(lab);
  return result;
}

static const dl_ring_version *find_ring(const char *name) {
  for (size_t i = 0; dl_ring_versions[i] != NULL; ++i)
    if (strcmp(dl_ring_versions[i]->name, name) == 0) return dl_ring_versions[i];
  dl_raise(DL_BAD_ARGUMENT, "ring: no such version");
  return NULL;
}

static PyObject *transfer_result(const dl_lab *lab, const dl_transfer *task) {
  return Py_BuildValue("{sLsKsKsKsN}", "ticks", (long long)lab->elapsed, "received", (unsigned long long)task->received,
                       "wrong", (unsigned long long)task->wrong, "checksum", (unsigned long long)task->checksum, "latency",
                       PyBytes_FromStringAndSize((const char *)task->latency,
                                                 task->latency ? (Py_ssize_t)(task->received * sizeof(int64_t)) : 0));
}

static bool ring_fits(const dl_ring_version *version, long long capacity, Py_ssize_t threads) {
  if (capacity < 2 || (version->mask && (capacity & (capacity - 1)) != 0)) {
    dl_raise(DL_BAD_ARGUMENT, "ring: expected a capacity of 2 or more, for v6 and later a power of two");
    return false;
  }
  if (threads > 2 || (threads == 2 && !version->threads)) {
    dl_raise(DL_BAD_ARGUMENT, "ring: expected two CPUs, or one for both ends in one thread (v1 has no other way)");
    return false;
  }
  return true;
}

static PyObject *ring(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  static char *names[] = {"version", "cpus", "capacity", "count", "gap", "latency", NULL};
  const char *name;
  PyObject *cpus, *result = NULL;
  long long capacity, count, gap = 0;
  int latency = 0;
  int32_t where[DL_LAB_THREADS];
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOLL|Lp", names, &name, &cpus, &capacity, &count, &gap, &latency)) return NULL;
  const dl_ring_version *version = find_ring(name);
  const Py_ssize_t threads = PySequence_Size(cpus);
  if (version == NULL || threads < 0 || !ring_fits(version, capacity, threads)) return NULL;
  if (count < 1 || gap < 0) return dl_raise(DL_BAD_ARGUMENT, "ring: expected a count of 1 or more and no negative gap");
  dl_transfer task = {.count = (uint64_t)count, .gap = (uint64_t)gap};
  dl_lab *lab = new_lab(threads == 1 ? version->single : version->body, &task);
  task.ring = version->open((size_t)capacity);
  if (latency) task.latency = calloc((size_t)count, sizeof(int64_t));
  if (lab == NULL || task.ring == NULL || (latency && task.latency == NULL)) PyErr_NoMemory();
  else if (take_cpus(cpus, lab, where) == 0 && run(lab) == 0) result = transfer_result(lab, &task);
  if (task.ring != NULL) version->close(task.ring);
  free(task.latency);
  free(lab);
  return result;
}

static const dl_lock_version *find_lock(const char *name) {
  for (size_t i = 0; dl_lock_versions[i] != NULL; ++i)
    if (strcmp(dl_lock_versions[i]->name, name) == 0) return dl_lock_versions[i];
  dl_raise(DL_BAD_ARGUMENT, "lock: no such version");
  return NULL;
}

static PyObject *contest_result(const dl_lab *lab, const dl_contest *task) {
  const Py_ssize_t bytes = (Py_ssize_t)(lab->threads * sizeof(int64_t));
  return Py_BuildValue("{sLsLsKsKsNsN}", "ticks", (long long)lab->elapsed, "whole_ticks", (long long)lab->whole, "counter",
                       (unsigned long long)task->counter, "handoffs", (unsigned long long)task->handoffs, "acquired",
                       PyBytes_FromStringAndSize((const char *)task->acquired, bytes), "longest",
                       PyBytes_FromStringAndSize((const char *)task->longest, bytes));
}

static PyObject *lock(PyObject *module, PyObject *args, PyObject *kwargs) {
  (void)module;
  static char *names[] = {"version", "cpus", "each", "ticks", "hold", "waits", NULL};
  const char *name;
  PyObject *cpus, *result = NULL;
  long long each, ticks = 0, hold = 0;
  int waits = 0;
  int32_t where[DL_LAB_THREADS];
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOL|LLp", names, &name, &cpus, &each, &ticks, &hold, &waits)) return NULL;
  const dl_lock_version *version = find_lock(name);
  if (version == NULL) return NULL;
  if (each < 0 || ticks < 0 || hold < 0 || (each == 0 && (ticks == 0 || !waits)))
    return dl_raise(DL_BAD_ARGUMENT, "lock: expected acquisitions per thread, or 0 of them with ticks and waits");
  dl_contest *task = aligned_alloc(DL_APART, (sizeof *task + DL_APART - 1) / DL_APART * DL_APART);
  if (task == NULL) return PyErr_NoMemory();
  *task = (dl_contest){.each = (uint64_t)each, .ticks = (uint64_t)ticks, .hold = (uint64_t)hold, .waits = waits != 0};
  dl_lab *lab = new_lab(version->body, task);
  task->lock = version->open();
  if (lab == NULL || task->lock == NULL) PyErr_NoMemory();
  else if (take_cpus(cpus, lab, where) == 0 && run(lab) == 0) result = contest_result(lab, task);
  if (task->lock != NULL) version->close(task->lock);
  free(lab);
  free(task);
  return result;
}

static PyObject *pipeline_result(const dl_lab *lab, const dl_pipeline *task) {
  return Py_BuildValue("{sLsKsKsN}", "ticks", (long long)lab->elapsed, "received", (unsigned long long)task->received,
                       "checksum", (unsigned long long)task->checksum, "latency",
                       PyBytes_FromStringAndSize((const char *)task->latency, (Py_ssize_t)(task->received * sizeof(int64_t))));
}

static PyObject *pipeline(PyObject *module, PyObject *args) {
  dl_module_state *types = PyModule_GetState(module);
  PyObject *object, *cpus, *result = NULL;
  long long capacity, count, gap;
  int32_t where[DL_LAB_THREADS];
  if (!PyArg_ParseTuple(args, "O!OLLL", types->slot_type, &object, &cpus, &capacity, &count, &gap)) return NULL;
  if (PySequence_Size(cpus) != 2 || count < 1 || gap < 0 || capacity < 2 || (capacity & (capacity - 1)) != 0)
    return PyErr_Occurred() ? NULL : dl_raise(DL_BAD_ARGUMENT, "pipeline: expected two CPUs, a capacity that is a power of two, a packet or more");
  const dl_py_slot *slot = (dl_py_slot *)object;
  dl_pipeline task = {.loops = slot->prepared.loops, .state = slot->prepared.state, .packets = DL_SLOT_PACKETS(slot),
                      .pool = (size_t)slot->count, .count = (uint64_t)count, .gap = (uint64_t)gap};
  dl_lab *lab = new_lab(dl_pipeline_body, &task);
  task.ring = dl_pipeline_ring((size_t)capacity);
  task.latency = calloc((size_t)count, sizeof(int64_t));
  if (lab == NULL || task.ring == NULL || task.latency == NULL) PyErr_NoMemory();
  else if (take_cpus(cpus, lab, where) == 0 && run(lab) == 0) result = pipeline_result(lab, &task);
  if (task.ring != NULL) dl_pipeline_ring_close(task.ring);
  free(task.latency);
  free(lab);
  return result;
}

static PyObject *versions(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && dl_ring_versions[i] != NULL; ++i) {
    const dl_ring_version *v = dl_ring_versions[i];
    PyObject *row = Py_BuildValue("(sssO)", "ring", v->name, v->description, v->mask ? Py_True : Py_False);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  for (size_t i = 0; list != NULL && dl_lock_versions[i] != NULL; ++i) {
    const dl_lock_version *v = dl_lock_versions[i];
    PyObject *row = Py_BuildValue("(sssO)", "lock", v->name, v->description, v->fair ? Py_True : Py_False);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject *transfer_expected(PyObject *module, PyObject *args) {
  (void)module;
  long long count;
  uint64_t sum;
  if (!PyArg_ParseTuple(args, "L", &count)) return NULL;
  if (count < 0) return dl_raise(DL_BAD_ARGUMENT, NULL);
  Py_BEGIN_ALLOW_THREADS
  sum = dl_transfer_expected((uint64_t)count);
  Py_END_ALLOW_THREADS
  return PyLong_FromUnsignedLongLong(sum);
}

PyMethodDef dl_threads_methods[] = {
    {"lab_roundtrip", roundtrip, METH_VARARGS, NULL},
    {"lab_ring", (PyCFunction)(void (*)(void))ring, METH_VARARGS | METH_KEYWORDS, NULL},
    {"lab_lock", (PyCFunction)(void (*)(void))lock, METH_VARARGS | METH_KEYWORDS, NULL},
    {"lab_pipeline", pipeline, METH_VARARGS, NULL},
    {"lab_versions", versions, METH_NOARGS, NULL},
    {"lab_transfer_expected", transfer_expected, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
