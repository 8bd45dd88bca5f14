/* dispatchlab._engine: multi-phase initialisation, limited API, no static objects. */
#include "binding.h"

static PyMethodDef *const rooms[] = {
    dl_handlers_methods,
    dl_measure_methods,
    dl_instruments_methods,
    dl_threads_methods,
    dl_costs_methods,
    dl_plugin_methods,
};

static int exec_module(PyObject *module) {
  dl_module_state *state = PyModule_GetState(module);
  if (dl_add_type(module, &dl_handler_set_spec, &state->handler_set_type) < 0) return -1;
  if (dl_add_type(module, &dl_slot_spec, &state->slot_type) < 0) return -1;
  if (dl_add_type(module, &dl_plugin_spec, &state->plugin_type) < 0) return -1;
  if (dl_add_type(module, &dl_instance_spec, &state->instance_type) < 0) return -1;
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; ++i)
    if (PyModule_AddFunctions(module, rooms[i]) < 0) return -1;
  return 0;
}

static int traverse_module(PyObject *module, visitproc visit, void *arg) {
  dl_module_state *state = PyModule_GetState(module);
  Py_VISIT(state->handler_set_type);
  Py_VISIT(state->slot_type);
  Py_VISIT(state->plugin_type);
  Py_VISIT(state->instance_type);
  return 0;
}

static int clear_module(PyObject *module) {
  dl_module_state *state = PyModule_GetState(module);
  Py_CLEAR(state->handler_set_type);
  Py_CLEAR(state->slot_type);
  Py_CLEAR(state->plugin_type);
  Py_CLEAR(state->instance_type);
  return 0;
}

static void free_module(void *module) { clear_module(module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec_module},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dispatchlab._engine",
    .m_doc = "The C engine: arms, loop, loader. Use the dispatchlab package, not this module.",
    .m_size = sizeof(dl_module_state),
    .m_slots = slots,
    .m_traverse = traverse_module,
    .m_clear = clear_module,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__engine(void) { return PyModuleDef_Init(&definition); }
