/* Shared by the files of the binding, the only ones that include Python.h.
 * A room of the binding is one file that exports one NULL-terminated method table, listed in module.c. */
#ifndef DL_BINDING_H
#define DL_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "affinity.h"
#include "status.h"

/* Sets the exception that belongs to a status; `what` is the whole message, or NULL for a general one.
 * Always returns NULL, so that a caller can `return dl_raise(...)`. */
PyObject *dl_raise(dl_status status, const char *what);

/* Sets the ValueError of a CPU outside the allowed set, naming the set; returns NULL. */
PyObject *dl_raise_cpu(const dl_affinity *saved, long cpu);

extern PyMethodDef dl_instruments_methods[];

#endif
