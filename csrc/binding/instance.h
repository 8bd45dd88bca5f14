/* The Instance object: one instance of a plugin, alive as long as whatever calls it. */
#ifndef DL_BINDING_INSTANCE_H
#define DL_BINDING_INSTANCE_H

#include "binding.h"
#include "plugin.h"

typedef struct dl_py_instance {
  PyObject_HEAD
  dl_instance instance;
  PyObject *plugin; /* kept alive; NULL while nothing has been created */
} dl_py_instance;

#endif
