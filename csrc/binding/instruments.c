/* The instruments on their own: clock, pinning, ledger and counters around a Python callable, for studies of the
 * measuring itself and for tests. The timed loop uses the same core functions without coming here. */
#include "binding.h"

#include <stdio.h>

#include "affinity.h"
#include "clock.h"
#include "counters.h"
#include "itlb.h"
#include "ledger.h"

/* Puts value into dict and lets go of it; false, with an exception set, when either could not be made. */
static bool put(PyObject *dict, const char *name, PyObject *value) {
  const bool done = value != NULL && PyDict_SetItemString(dict, name, value) == 0;
  Py_XDECREF(value);
  return done;
}

static PyObject *none(void) { return Py_NewRef(Py_None); }

/* Calls without arguments and drops the result; false when the callable raised. */
static bool ran(PyObject *call) {
  PyObject *result = PyObject_CallNoArgs(call);
  Py_XDECREF(result);
  return result != NULL;
}

static PyObject *refuse_clock(dl_status status, const dl_clock_info *info) {
  char line[160];
  if (status == DL_NOT_SUPPORTED) return dl_raise(status, "clock tsc: this CPU lacks RDTSCP");
  if (info->steps.backward > 0) {
    snprintf(line, sizeof line, "clock %s stepped back by %lld ticks: no time measured here can be trusted",
             info->source, (long long)info->steps.backward);
    return dl_raise(status, line);
  }
  if (info->cost >= 0) {
    snprintf(line, sizeof line, "clock %s does not move against the kernel's clock", info->source);
    return dl_raise(status, line);
  }
  return dl_raise(status, NULL);
}

static dl_status calibrate(dl_clock_info *info) {
  dl_status status;
  Py_BEGIN_ALLOW_THREADS
  status = dl_clock_calibrate(info);
  Py_END_ALLOW_THREADS
  return status;
}

static PyObject *clock_info(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  dl_clock_info info;
  const dl_status status = calibrate(&info);
  if (status != DL_OK) return refuse_clock(status, &info);
  return Py_BuildValue("{s:s,s:N,s:L,s:L,s:d}", "source", info.source, "steady", PyBool_FromLong(info.steady), "step",
                       (long long)info.steps.smallest, "cost", (long long)info.cost, "ticks_per_ns", info.ticks_per_ns);
}

static PyObject *clock_steps(PyObject *module, PyObject *readings) {
  (void)module;
  Py_buffer view;
  if (PyObject_GetBuffer(readings, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0) return NULL;
  PyObject *result = NULL;
  if (view.itemsize != sizeof(uint64_t) || (uintptr_t)view.buf % _Alignof(uint64_t) != 0) {
    PyErr_SetString(PyExc_ValueError, "clock readings: expected aligned, contiguous 64-bit ticks");
  } else {
    const dl_clock_steps steps = dl_clock_steps_of(view.buf, (size_t)view.len / sizeof(uint64_t));
    result = Py_BuildValue("(LL)", (long long)steps.smallest, (long long)steps.backward);
  }
  PyBuffer_Release(&view);
  return result;
}

static PyObject *clock_reading(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromUnsignedLongLong(dl_ticks_begin());
}

PyObject *dl_raise_cpu(const dl_affinity *saved, long cpu) {
  char allowed[160], line[256];
  dl_affinity_describe(saved, allowed, sizeof allowed);
  snprintf(line, sizeof line, "cpu: expected one of the allowed CPUs %s; got %ld", allowed, cpu);
  return dl_raise(DL_BAD_ARGUMENT, line);
}

static PyObject *allowed_cpus(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  dl_affinity saved;
  const dl_status status = dl_affinity_save(&saved);
  if (status != DL_OK) return dl_raise(status, NULL);

  PyObject *list = NULL;
  const size_t count = dl_affinity_allowed(&saved, NULL, 0);
  int32_t *cpus = PyMem_Calloc(count + 1, sizeof *cpus);
  if (cpus == NULL) {
    PyErr_NoMemory();
    goto out;
  }
  dl_affinity_allowed(&saved, cpus, count);
  list = PyList_New(0);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyObject *cpu = PyLong_FromLong(cpus[i]);
    if (cpu == NULL || PyList_Append(list, cpu) < 0) Py_CLEAR(list);
    Py_XDECREF(cpu);
  }
out:
  PyMem_Free(cpus);
  dl_affinity_free(&saved);
  return list;
}

static PyObject *pinned(PyObject *module, PyObject *args) {
  (void)module;
  int cpu;
  PyObject *call;
  if (!PyArg_ParseTuple(args, "iO:pinned", &cpu, &call)) return NULL;
  dl_affinity saved;
  dl_status status = dl_affinity_save(&saved);
  if (status != DL_OK) return dl_raise(status, NULL);
  status = dl_affinity_pin(&saved, cpu);
  if (status != DL_OK) {
    if (status == DL_BAD_ARGUMENT) dl_raise_cpu(&saved, cpu);
    else dl_raise(status, NULL);
    dl_affinity_free(&saved);
    return NULL;
  }
  PyObject *result = PyObject_CallNoArgs(call);
  status = dl_affinity_restore(&saved);
  if (status != DL_OK && result != NULL) {
    dl_raise(status, NULL);
    Py_CLEAR(result);
  }
  return result;
}

static PyObject *ledger_call(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *call;
  int cpu = -1;
  if (!PyArg_ParseTuple(args, "O|i:ledger_call", &call, &cpu)) return NULL;
  dl_clock_info clock;
  const dl_status status = calibrate(&clock);
  if (status != DL_OK) return refuse_clock(status, &clock);
  dl_ledger ledger;
  if (dl_ledger_open(&ledger, cpu) != DL_OK) return PyErr_NoMemory();

  dl_ledger_sample from, to;
  dl_ledger_read(&ledger, &from);
  const bool done = ran(call);
  dl_ledger_read(&ledger, &to);
  dl_ledger_close(&ledger);

  int64_t row[DL_LEDGER_COLUMNS];
  dl_ledger_row(&from, &to, clock.ticks_per_ns, row);
  PyObject *dict = done ? PyDict_New() : NULL;
  for (int i = 0; dict != NULL && i < DL_LEDGER_COLUMNS; ++i)
    if (!put(dict, dl_ledger_names[i], PyLong_FromLongLong(row[i]))) Py_CLEAR(dict);
  return dict;
}

static PyObject *reason(int why) {
  char text[256];
  dl_counters_reason(why, dl_counters_paranoid(), text, sizeof text);
  return PyUnicode_FromString(text);
}

static PyObject *counter_reason(PyObject *module, PyObject *why) {
  (void)module;
  const long code = PyLong_AsLong(why);
  if (code == -1 && PyErr_Occurred()) return NULL;
  return reason(code < INT32_MIN || code > INT32_MAX ? INT32_MAX : (int)code);
}

/* One reading as a dict; value is None where there is none, and then reason is a line of text. */
static PyObject *reading_dict(const dl_counter_reading *reading) {
  static const char *const sources[] = {
      [DL_FROM_NOWHERE] = NULL, [DL_FROM_PERF] = "perf", [DL_FROM_ACCOUNTING] = "accounting"};
  const bool has = reading->source != DL_FROM_NOWHERE;
  return Py_BuildValue("{s:N,s:L,s:L,s:z,s:N}",
                       "value", has ? PyLong_FromLongLong(reading->value) : none(),
                       "enabled_ns", (long long)reading->enabled_ns,
                       "running_ns", (long long)reading->running_ns,
                       "source", sources[reading->source],
                       "reason", has ? none() : reason(reading->why));
}

static PyObject *count_call(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *call;
  int cpu = -1;
  if (!PyArg_ParseTuple(args, "O|i:count_call", &call, &cpu)) return NULL;
  dl_counters counters;
  dl_counters_open(&counters, cpu, dl_event_open);
  dl_counters_start(&counters);
  const bool done = ran(call);
  dl_counters_stop(&counters);
  dl_counter_reading readings[DL_COUNTERS];
  dl_counters_read(&counters, readings);
  dl_counters_close(&counters);

  PyObject *dict = done ? PyDict_New() : NULL;
  for (int i = 0; dict != NULL && i < DL_COUNTERS; ++i)
    if (!put(dict, dl_counter_names[i], reading_dict(&readings[i]))) Py_CLEAR(dict);
  return dict;
}

static PyObject *itlb_entries(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyLong_FromLong(dl_itlb_entries());
}

PyMethodDef dl_instruments_methods[] = {
    {"itlb_entries", itlb_entries, METH_NOARGS, NULL},
    {"clock_info", clock_info, METH_NOARGS, "Source, steadiness, smallest step, cost and rate of the loop's clock."},
    {"clock_steps", clock_steps, METH_O, "(smallest step, largest step back) of readings in the order taken."},
    {"clock_reading", clock_reading, METH_NOARGS, "The loop's clock now, in ticks."},
    {"allowed_cpus", allowed_cpus, METH_NOARGS, "CPUs the calling thread may use."},
    {"pinned", pinned, METH_VARARGS, "pinned(cpu, call): call() on that CPU, then the old mask again."},
    {"ledger_call", ledger_call, METH_VARARGS, "ledger_call(call, cpu=-1): what happened to the thread during call()."},
    {"counter_reason", counter_reason, METH_O, "Why perf_event_open answers with this errno, in words."},
    {"count_call", count_call, METH_VARARGS, "count_call(call, cpu=-1): every counter around call()."},
    {NULL, NULL, 0, NULL},
};
