/* Shared by the files of the binding, the only ones that include Python.h.
 * A room of the binding is one file that exports one NULL-terminated method table and is listed in module.c. */
#ifndef DL_BINDING_H
#define DL_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "affinity.h"
#include "status.h"

/* What belongs to one imported module: its heap types. */
typedef struct dl_module_state {
  PyTypeObject *handler_set_type;
  PyTypeObject *slot_type;
  PyTypeObject *plugin_type;
  PyTypeObject *instance_type;
} dl_module_state;

/* Sets the exception that belongs to a status; `what` is the whole message, or NULL for a general one.
 * Always returns NULL, so that a caller can `return dl_raise(...)`. */
PyObject *dl_raise(dl_status status, const char *what);

/* Sets the ValueError of a CPU outside the allowed set, naming the set; returns NULL. */
PyObject *dl_raise_cpu(const dl_affinity *saved, long cpu);

/* Fills a type of the module state from its spec; 0, or -1 with an exception. */
int dl_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type);

/* A contiguous read-only view of `items` items of `item_size` bytes (any number when items is negative); 0, or -1 with an
 * exception that names the argument. Release with PyBuffer_Release(). */
int dl_get_buffer(PyObject *object, const char *name, Py_ssize_t item_size, Py_ssize_t items, Py_buffer *view);

/* HandlerSet: owns a dl_handler_set. */
typedef struct dl_py_handler_set {
  PyObject_HEAD
  struct dl_handler_set *set;
  PyObject *instances; /* of the handlers that came from outside, kept alive; NULL: none */
} dl_py_handler_set;

extern PyType_Spec dl_handler_set_spec;
extern PyType_Spec dl_slot_spec;
extern PyType_Spec dl_plugin_spec;
extern PyType_Spec dl_instance_spec;

extern PyMethodDef dl_handlers_methods[];
extern PyMethodDef dl_measure_methods[];
extern PyMethodDef dl_instruments_methods[];
extern PyMethodDef dl_threads_methods[];
extern PyMethodDef dl_costs_methods[];
extern PyMethodDef dl_plugin_methods[];

#endif
