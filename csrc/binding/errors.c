/* Status to exception: the only place where a core status becomes a Python exception. */
#include "binding.h"

#include <errno.h>

PyObject *dl_raise(dl_status status, const char *what) {
  switch (status) {
    case DL_NO_MEMORY: return PyErr_NoMemory();
    case DL_OS_ERROR:
      if (what == NULL) return PyErr_SetFromErrno(PyExc_OSError);
      PyErr_SetString(PyExc_OSError, what);
      return NULL;
    case DL_NOT_SUPPORTED: PyErr_SetString(PyExc_NotImplementedError, what ? what : "not available on this machine"); return NULL;
    case DL_STOPPED: PyErr_SetString(PyExc_KeyboardInterrupt, what ? what : "stopped"); return NULL;
    case DL_OK:
    case DL_BAD_ARGUMENT:
    case DL_NOT_ALLOWED: break;
  }
  PyErr_SetString(PyExc_ValueError, what ? what : "value outside what the engine accepts");
  return NULL;
}
