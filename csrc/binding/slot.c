/* The Slot object and everything untimed that one can ask of it. */
#include "slot.h"

#include "measure.h"

static int prepare(dl_py_slot *self, const uint64_t *frequency) {
  const dl_arm_setup setup = {DL_SLOT_SET(self), frequency};
  const dl_status status = self->arm->prepare(&setup, &self->prepared);
  if (status == DL_OK) return 0;
  const char *why = self->prepared.why != NULL ? self->prepared.why : self->arm->description;
  dl_raise(status, status == DL_NOT_ALLOWED ? why : NULL);
  return -1;
}

/* Takes the packets and, where given, one frequency per handler. */
static int fill(dl_py_slot *self, PyObject *packets, PyObject *frequency) {
  Py_buffer view;
  if (dl_get_buffer(packets, "packets", sizeof(dl_packet), -1, &self->packets) < 0) return -1;
  self->count = self->packets.len / (Py_ssize_t)sizeof(dl_packet);
  if (frequency == Py_None) return prepare(self, NULL);
  if (dl_get_buffer(frequency, "frequency", sizeof(uint64_t), DL_SLOT_SET(self)->count, &view) < 0) return -1;
  const int result = prepare(self, view.buf);
  PyBuffer_Release(&view);
  return result;
}

PyObject *dl_slot_create(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"arm", "handlers", "packets", "frequency", "delay_ppm", NULL};
  dl_module_state *state = PyModule_GetState(module);
  const char *name;
  PyObject *set, *packets, *frequency = Py_None;
  long long delay_ppm = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO!O|OL", names, &name, state->handler_set_type, &set, &packets,
                                   &frequency, &delay_ppm))
    return NULL;
  const dl_arm *arm = dl_arm_find(name);
  if (arm == NULL) return PyErr_Format(PyExc_ValueError, "no arm is called '%s'", name);
  allocfunc alloc = (allocfunc)PyType_GetSlot(state->slot_type, Py_tp_alloc);
  dl_py_slot *self = (dl_py_slot *)alloc(state->slot_type, 0);
  if (self == NULL) return NULL;
  self->arm = arm;
  self->delay_ppm = delay_ppm;
  Py_INCREF(set);
  self->set = set;
  if (fill(self, packets, frequency) == 0) return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

static void slot_dealloc(PyObject *object) {
  dl_py_slot *self = (dl_py_slot *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->base == NULL && self->prepared.destroy != NULL) self->prepared.destroy(self->prepared.state);
  Py_XDECREF(self->base);
  if (self->packets.obj != NULL) PyBuffer_Release(&self->packets);
  Py_XDECREF(self->set);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/* A second slot over the very same arm, data and packets, slower by a known share: nothing else can tell the two apart. */
static PyObject *slowed(PyObject *object, PyObject *args) {
  dl_py_slot *base = (dl_py_slot *)object;
  long long delay_ppm;
  if (!PyArg_ParseTuple(args, "L", &delay_ppm)) return NULL;
  allocfunc alloc = (allocfunc)PyType_GetSlot(Py_TYPE(object), Py_tp_alloc);
  dl_py_slot *self = (dl_py_slot *)alloc(Py_TYPE(object), 0);
  if (self == NULL) return NULL;
  self->base = Py_NewRef(object);
  self->set = Py_NewRef(base->set);
  if (PyObject_GetBuffer(base->packets.obj, &self->packets, PyBUF_C_CONTIGUOUS) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  self->arm = base->arm;
  self->prepared = base->prepared;
  self->count = base->count;
  self->delay_ppm = delay_ppm;
  return (PyObject *)self;
}

static PyObject *results(PyObject *object, PyObject *unused) {
  dl_py_slot *self = (dl_py_slot *)object;
  (void)unused;
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, self->count * (Py_ssize_t)sizeof(dl_result));
  if (bytes == NULL) return NULL;
  dl_result *out = (dl_result *)(void *)PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS
  self->prepared.loops->results(self->prepared.state, DL_SLOT_PACKETS(self), (size_t)self->count, out);
  Py_END_ALLOW_THREADS
  return bytes;
}

static PyObject *count(PyObject *object, PyObject *unused) {
  dl_py_slot *self = (dl_py_slot *)object;
  uint64_t sum;
  (void)unused;
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, self->count * (Py_ssize_t)sizeof(uint32_t));
  if (bytes == NULL) return NULL;
  uint32_t *out = (uint32_t *)(void *)PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS
  sum = self->prepared.loops->count(self->prepared.state, DL_SLOT_PACKETS(self), (size_t)self->count, out);
  Py_END_ALLOW_THREADS
  return Py_BuildValue("(KN)", (unsigned long long)sum, bytes);
}

static PyObject *run(PyObject *object, PyObject *args) {
  dl_py_slot *self = (dl_py_slot *)object;
  unsigned placement;
  uint64_t sum;
  if (!PyArg_ParseTuple(args, "I", &placement)) return NULL;
  if (placement >= DL_PLACEMENTS) return dl_raise(DL_BAD_ARGUMENT, "run: there are four placements, 0..3");
  Py_BEGIN_ALLOW_THREADS
  sum = self->prepared.loops->timed[placement](self->prepared.state, DL_SLOT_PACKETS(self), (size_t)self->count);
  Py_END_ALLOW_THREADS
  return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *sample(PyObject *object, PyObject *args) {
  dl_py_slot *self = (dl_py_slot *)object;
  Py_ssize_t stride, phase;
  uint64_t sum;
  if (!PyArg_ParseTuple(args, "nn", &stride, &phase)) return NULL;
  if (stride < 1 || phase < 0 || phase >= stride)
    return dl_raise(DL_BAD_ARGUMENT, "sample: the stride must be at least 1 and the phase lie in 0..stride-1");
  const Py_ssize_t samples = self->count > phase ? (self->count - phase + stride - 1) / stride : 0;
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, samples * (Py_ssize_t)sizeof(int64_t));
  if (bytes == NULL) return NULL;
  int64_t *out = (int64_t *)(void *)PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS
  sum = self->prepared.loops->sample(self->prepared.state, DL_SLOT_PACKETS(self), (size_t)self->count, (size_t)stride,
                                     (size_t)phase, out);
  Py_END_ALLOW_THREADS
  return Py_BuildValue("(KN)", (unsigned long long)sum, bytes);
}

static PyObject *reference(PyObject *object, PyObject *unused) {
  dl_py_slot *self = (dl_py_slot *)object;
  (void)unused;
  PyObject *selected = PyBytes_FromStringAndSize(NULL, self->count * (Py_ssize_t)sizeof(int32_t));
  PyObject *answers = PyBytes_FromStringAndSize(NULL, self->count * (Py_ssize_t)sizeof(dl_result));
  if (selected == NULL || answers == NULL) {
    Py_XDECREF(selected);
    Py_XDECREF(answers);
    return NULL;
  }
  int32_t *s = (int32_t *)(void *)PyBytes_AsString(selected);
  dl_result *r = (dl_result *)(void *)PyBytes_AsString(answers);
  Py_BEGIN_ALLOW_THREADS
  dl_reference_results(DL_SLOT_SET(self), self->arm->answers, DL_SLOT_PACKETS(self), (size_t)self->count, s, r);
  Py_END_ALLOW_THREADS
  return Py_BuildValue("(NN)", selected, answers);
}

static PyObject *expected(PyObject *object, PyObject *args) {
  dl_py_slot *self = (dl_py_slot *)object;
  Py_ssize_t block;
  if (!PyArg_ParseTuple(args, "n", &block)) return NULL;
  if (block < 1 || block > self->count) return dl_raise(DL_BAD_ARGUMENT, "expected: a block holds 1 packet or more, up to all");
  const Py_ssize_t windows = self->count / block;
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, windows * (Py_ssize_t)sizeof(uint64_t));
  if (bytes == NULL) return NULL;
  uint64_t *out = (uint64_t *)(void *)PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS
  dl_expected_checksums(DL_SLOT_SET(self), self->arm->answers, DL_SLOT_PACKETS(self), (size_t)self->count,
                        (size_t)block, out);
  Py_END_ALLOW_THREADS
  return bytes;
}

static PyObject *footprint(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromSize_t(((dl_py_slot *)object)->prepared.footprint);
}

static PyMethodDef slot_methods[] = {
    {"slowed", slowed, METH_VARARGS, NULL},
    {"results", results, METH_NOARGS, NULL},
    {"count", count, METH_NOARGS, NULL},
    {"run", run, METH_VARARGS, NULL},
    {"sample", sample, METH_VARARGS, NULL},
    {"reference", reference, METH_NOARGS, NULL},
    {"expected", expected, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef slot_getset[] = {
    {"footprint", footprint, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slot_slots[] = {
    {Py_tp_dealloc, (void *)slot_dealloc},
    {Py_tp_methods, slot_methods},
    {Py_tp_getset, slot_getset},
    {Py_tp_doc, "One arm over one handler set and one traffic; made by slot()."},
    {0, NULL},
};

PyType_Spec dl_slot_spec = {
    .name = "dispatchlab._engine.Slot",
    .basicsize = sizeof(dl_py_slot),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slot_slots,
};
