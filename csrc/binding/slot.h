/* The Slot object: an arm prepared over one handler set and one traffic, alive as long as both. */
#ifndef DL_BINDING_SLOT_H
#define DL_BINDING_SLOT_H

#include "arm.h"
#include "binding.h"

typedef struct dl_py_slot {
  PyObject_HEAD
  const dl_arm *arm;
  dl_prepared prepared;
  PyObject *set;     /* dl_py_handler_set, kept alive */
  Py_buffer packets; /* kept alive */
  Py_ssize_t count;
  long long delay_ppm;
  PyObject *base; /* the slot whose prepared arm this one runs too, kept alive; NULL: its own */
} dl_py_slot;

#define DL_SLOT_PACKETS(slot) ((const dl_packet *)(slot)->packets.buf)
#define DL_SLOT_SET(slot) (((dl_py_handler_set *)(slot)->set)->set)

/* Makes a Slot; the function behind _engine.slot(). */
PyObject *dl_slot_create(PyObject *module, PyObject *args, PyObject *kwargs);

#endif
