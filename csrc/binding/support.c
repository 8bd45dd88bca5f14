/* Small things that every room of the binding needs. */
#include "binding.h"

int dl_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
  *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
  return *type == NULL ? -1 : PyModule_AddType(module, *type);
}

int dl_get_buffer(PyObject *object, const char *name, Py_ssize_t item_size, Py_ssize_t items, Py_buffer *view) {
  if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) < 0) return -1;
  const Py_ssize_t wanted = items * item_size;
  if (items >= 0 ? view->len == wanted : view->len % item_size == 0) return 0;
  PyErr_Format(PyExc_ValueError, "%s: expected %zd bytes%s, got %zd", name, items >= 0 ? wanted : item_size,
               items >= 0 ? "" : " per item", view->len);
  PyBuffer_Release(view);
  return -1;
}
