/* What single things cost: one call is one round of one thing. The GIL is released while it runs. */
#include "costs.h"

#include <stdlib.h>
#include <string.h>

#include "binding.h"

static const char chain_name[] = "dispatchlab.chain";

static PyObject *cost_result(dl_status status, const dl_cost *cost) {
  if (status != DL_OK) return dl_raise(status, status == DL_BAD_ARGUMENT ? "costs: a count or kind out of range" : NULL);
  return Py_BuildValue("{sLsKsKsK}", "ticks", (long long)cost->ticks, "count", (unsigned long long)cost->count, "checksum",
                       (unsigned long long)cost->checksum, "expected", (unsigned long long)cost->expected);
}

static void free_chain(PyObject *capsule) {
  dl_chain *chain = PyCapsule_GetPointer(capsule, chain_name);
  if (chain == NULL) return;
  dl_chain_close(chain);
  PyMem_Free(chain);
}

static PyObject *chain_open(PyObject *module, PyObject *args) {
  (void)module;
  Py_ssize_t lines, stride;
  int huge;
  unsigned long long seed;
  if (!PyArg_ParseTuple(args, "nnpK", &lines, &stride, &huge, &seed)) return NULL;
  if (lines < 1 || stride < 1) return dl_raise(DL_BAD_ARGUMENT, "chain: expected one line or more and a stride in bytes");
  dl_chain *chain = PyMem_Calloc(1, sizeof *chain);
  if (chain == NULL) return PyErr_NoMemory();
  dl_status status;
  Py_BEGIN_ALLOW_THREADS
  status = dl_chain_open(chain, (size_t)lines, (size_t)stride, huge != 0, seed);
  Py_END_ALLOW_THREADS
  PyObject *capsule = status == DL_OK ? PyCapsule_New(chain, chain_name, free_chain) : NULL;
  if (capsule != NULL) return capsule;
  dl_chain_close(chain);
  PyMem_Free(chain);
  if (PyErr_Occurred()) return NULL;
  return dl_raise(status, status == DL_BAD_ARGUMENT ? "chain: expected lines in memory, 64 to 2 MiB apart in steps of 64" : NULL);
}

static PyObject *chain_run(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *capsule;
  unsigned long long warm, steps;
  if (!PyArg_ParseTuple(args, "OKK", &capsule, &warm, &steps)) return NULL;
  const dl_chain *chain = PyCapsule_GetPointer(capsule, chain_name);
  if (chain == NULL) return NULL;
  dl_cost cost;
  Py_BEGIN_ALLOW_THREADS
  dl_chain_run(chain, warm, steps, &cost);
  Py_END_ALLOW_THREADS
  return cost_result(DL_OK, &cost);
}

static dl_status run_kind(const char *what, int kind, uint64_t count, uint64_t targets, uint64_t seed, dl_cost *out) {
  if (strcmp(what, "branch") == 0) return dl_cost_branch(kind, count, seed, out);
  if (strcmp(what, "call") == 0) return dl_cost_call(kind, targets, count, seed, out);
  if (strcmp(what, "divide") == 0) return dl_cost_divide(kind, count, out);
  if (strcmp(what, "add") == 0) return dl_cost_add(kind, count, out);
  if (strcmp(what, "empty") == 0) return dl_cost_empty(kind, count, out);
  if (strcmp(what, "syscall") == 0) return dl_cost_syscall(count, out);
  if (strcmp(what, "fault") == 0) return dl_cost_fault(count, out);
  return DL_BAD_ARGUMENT;
}

static PyObject *cost_run(PyObject *module, PyObject *args) {
  (void)module;
  const char *what;
  int kind;
  unsigned long long count, targets, seed;
  if (!PyArg_ParseTuple(args, "siKKK", &what, &kind, &count, &targets, &seed)) return NULL;
  dl_cost cost;
  dl_status status;
  Py_BEGIN_ALLOW_THREADS
  status = run_kind(what, kind, count, targets, seed, &cost);
  Py_END_ALLOW_THREADS
  return cost_result(status, &cost);
}

/* Two threads and more that add; the caller sleeps meanwhile. */
static PyObject *cost_adds(PyObject *module, PyObject *args) {
  (void)module;
  int first, second, apart;
  unsigned long long each;
  if (!PyArg_ParseTuple(args, "iiKp", &first, &second, &each, &apart)) return NULL;
  if (each < 1 || first == second) return dl_raise(DL_BAD_ARGUMENT, "adds: expected two CPUs and a count of 1 or more");
  const int32_t cpus[2] = {first, second};
  dl_lab *lab = aligned_alloc(DL_APART, (sizeof *lab + DL_APART - 1) / DL_APART * DL_APART);
  dl_adds *task = aligned_alloc(DL_APART, (sizeof *task + DL_APART - 1) / DL_APART * DL_APART);
  PyObject *result = NULL;
  if (lab == NULL || task == NULL) {
    PyErr_NoMemory();
    goto out;
  }
  memset(lab, 0, sizeof *lab);
  memset(task, 0, sizeof *task);
  task->each = each, task->apart = apart != 0;
  lab->body = dl_adds_body, lab->task = task, lab->cpus = cpus, lab->threads = 2;
  dl_status status;
  Py_BEGIN_ALLOW_THREADS
  status = dl_lab_run(lab, NULL, NULL);
  Py_END_ALLOW_THREADS
  const dl_cost cost = {lab->elapsed, each, atomic_load(&task->counters[0].n) + atomic_load(&task->counters[1].n), 2 * each};
  result = cost_result(status, &cost);
out:
  free(lab);
  free(task);
  return result;
}

static PyObject *bursts(PyObject *module, PyObject *args) {
  (void)module;
  unsigned long long count, sums, idle;
  int lanes;
  if (!PyArg_ParseTuple(args, "KKKp", &count, &sums, &idle, &lanes)) return NULL;
  if (count < 1 || count > 1000000) return dl_raise(DL_BAD_ARGUMENT, "bursts: expected 1 to a million");
  int64_t *ticks = PyMem_Calloc(count, sizeof *ticks);
  if (ticks == NULL) return PyErr_NoMemory();
  dl_status status;
  Py_BEGIN_ALLOW_THREADS
  status = dl_bursts(count, sums, idle, lanes != 0, ticks);
  Py_END_ALLOW_THREADS
  PyObject *result = NULL;
  if (status == DL_OK) result = PyBytes_FromStringAndSize((const char *)ticks, (Py_ssize_t)(count * sizeof *ticks));
  else dl_raise(status, status == DL_STOPPED ? "bursts: a sum came out wrong" : NULL);
  PyMem_Free(ticks);
  return result;
}

PyMethodDef dl_costs_methods[] = {
    {"cost_chain", chain_open, METH_VARARGS, "cost_chain(lines, stride, huge, seed): memory linked in a random cycle."},
    {"cost_chase", chain_run, METH_VARARGS, "cost_chase(chain, warm, steps): loads that wait for each other."},
    {"cost_run", cost_run, METH_VARARGS, "cost_run(what, kind, count, targets, seed): a round of one thing."},
    {"cost_adds", cost_adds, METH_VARARGS, "cost_adds(cpu, cpu, each, apart): two threads add, to one counter or to two."},
    {"cost_bursts", bursts, METH_VARARGS, "cost_bursts(count, sums, idle_ns, lanes): int64 ticks of each burst."},
    {NULL, NULL, 0, NULL},
};
