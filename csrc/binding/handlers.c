/* HandlerSet, and what was built into the engine: stamps, arms, compiler and flags. */
#include "handlers.h"

#include <stdlib.h>

#include "arm.h"
#include "binding.h"
#include "instance.h"

/* What the adapter calls, one entry for each instance; NULL with an exception. The caller frees it. */
static dl_foreign *adapt(PyObject *module, PyObject *instances) {
  dl_module_state *state = PyModule_GetState(module);
  const Py_ssize_t count = PyTuple_Size(instances);
  dl_foreign *out = calloc((size_t)count + 1, sizeof *out);
  if (out == NULL) return (dl_foreign *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *object = PyTuple_GetItem(instances, i);
    if (!Py_IS_TYPE(object, state->instance_type)) {
      PyErr_SetString(PyExc_TypeError, "handlers: instances must be a tuple of Instance");
      free(out);
      return NULL;
    }
    dl_instance *it = &((dl_py_instance *)object)->instance;
    out[i] = (dl_foreign){dl_instance_process, it->plugin->table.matches == NULL ? NULL : dl_instance_matches, it};
  }
  return out;
}

static PyObject *create(PyObject *module, const dl_handler_spec *spec, PyObject *instances) {
  dl_module_state *state = PyModule_GetState(module);
  allocfunc alloc = (allocfunc)PyType_GetSlot(state->handler_set_type, Py_tp_alloc);
  dl_py_handler_set *self = (dl_py_handler_set *)alloc(state->handler_set_type, 0);
  if (self == NULL) return NULL;
  Py_INCREF(instances);
  self->instances = instances;
  const dl_status status = dl_handler_set_create(spec, &self->set);
  if (status == DL_OK) return (PyObject *)self;
  Py_DECREF(self);
  return dl_raise(status, "handlers: the order must be a permutation of 0..count-1, the count lie in 1..512, no value have a "
                          "bit that its mask has not, and the state have 0 bytes or a power of two in 8..65536");
}

static PyObject *handler_set(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"body", "size", "packed", "keys", "masks", "values", "order", "state", "scattered", "instances", NULL};
  const char *body, *size;
  int packed, scattered = 0;
  unsigned state = 0;
  PyObject *objects[4], *instances = NULL;
  static const char *const fields[4] = {"keys", "masks", "values", "order"};
  static const Py_ssize_t widths[4] = {sizeof(uint16_t), 1, 1, sizeof(int32_t)};
  Py_buffer views[4];
  PyObject *result = NULL;
  int held = 0;

  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sspOOOO|IpO!", names, &body, &size, &packed, &objects[0], &objects[1],
                                   &objects[2], &objects[3], &state, &scattered, &PyTuple_Type, &instances))
    return NULL;
  instances = instances == NULL ? PyTuple_New(0) : Py_NewRef(instances);
  dl_foreign *foreign = instances == NULL ? NULL : adapt(module, instances);
  if (foreign == NULL) goto done;
  for (; held < 4; ++held) {
    const Py_ssize_t items = held == 0 ? -1 : views[0].len / (Py_ssize_t)sizeof(uint16_t);
    if (dl_get_buffer(objects[held], fields[held], widths[held], items, &views[held]) < 0) goto done;
  }
  const dl_handler_spec spec = {
      .stamp = dl_stamp_find(body, size),
      .count = (uint32_t)(views[0].len / (Py_ssize_t)sizeof(uint16_t)),
      .packed = packed,
      .keys = views[0].buf,
      .masks = views[1].buf,
      .values = views[2].buf,
      .order = views[3].buf,
      .state = state,
      .scattered = scattered,
      .foreign = foreign,
      .foreign_count = (uint32_t)PyTuple_Size(instances),
  };
  if (spec.stamp == NULL)
    PyErr_Format(PyExc_ValueError, "handlers: body '%s' at size '%s' was not built", body, size);
  else
    result = create(module, &spec, instances);
done:
  while (held > 0) PyBuffer_Release(&views[--held]);
  free(foreign);
  Py_XDECREF(instances);
  return result;
}

static PyObject *tallies(PyObject *object, PyObject *unused) {
  const dl_handler_set *set = ((dl_py_handler_set *)object)->set;
  (void)unused;
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)set->count * (Py_ssize_t)sizeof(uint64_t));
  if (bytes != NULL) dl_handler_set_tallies(set, (uint64_t *)(void *)PyBytes_AsString(bytes));
  return bytes;
}

static PyMethodDef handler_set_methods[] = {
    {"tallies", tallies, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static void handler_set_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  dl_handler_set_destroy(((dl_py_handler_set *)object)->set);
  Py_XDECREF(((dl_py_handler_set *)object)->instances);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyType_Slot handler_set_slots[] = {
    {Py_tp_dealloc, (void *)handler_set_dealloc},
    {Py_tp_methods, handler_set_methods},
    {Py_tp_doc, "A registered list of handlers in the engine; made by handler_set()."},
    {0, NULL},
};

PyType_Spec dl_handler_set_spec = {
    .name = "dispatchlab._engine.HandlerSet",
    .basicsize = sizeof(dl_py_handler_set),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = handler_set_slots,
};

static PyObject *arms(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  PyObject *list = PyList_New(0);
  for (const dl_arm *const *arm = dl_arms; list != NULL && *arm != NULL; ++arm) {
    const dl_arm *a = *arm;
    PyObject *row = Py_BuildValue("(ssssi)", a->name, a->family, a->guarantee, a->description, (int)a->answers);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject *stamps(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  PyObject *list = PyList_New(0);
  for (const dl_stamp *const *stamp = dl_stamps; list != NULL && *stamp != NULL; ++stamp) {
    PyObject *row = Py_BuildValue("(ssI)", (*stamp)->body, (*stamp)->size, (unsigned)(*stamp)->rounds);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject *build_info(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return Py_BuildValue("{ssssss}", "compiler", DL_BUILD_COMPILER, "flags", DL_BUILD_FLAGS, "abi", "abi3, 3.11");
}

PyMethodDef dl_handlers_methods[] = {
    {"handler_set", (PyCFunction)(void (*)(void))handler_set, METH_VARARGS | METH_KEYWORDS, NULL},
    {"arms", arms, METH_NOARGS, NULL},
    {"stamps", stamps, METH_NOARGS, NULL},
    {"build_info", build_info, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
