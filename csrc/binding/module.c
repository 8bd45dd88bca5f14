/* dispatchlab._engine: multi-phase initialisation, limited API, no static objects. */
#include "binding.h"

static const struct room {
  PyMethodDef *methods;
} rooms[] = {
    {dl_instruments_methods},
    {NULL},
};

static int exec_module(PyObject *module) {
  for (const struct room *r = rooms; r->methods != NULL; ++r)
    if (PyModule_AddFunctions(module, r->methods) < 0) return -1;
  return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec_module},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dispatchlab._engine",
    .m_doc = "The C engine: arms, loop, loader. Use the dispatchlab package, not this module.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__engine(void) { return PyModuleDef_Init(&definition); }
