/* Plugins as Python sees them: inspection of bytes, rehearsal, Plugin (an opened library) and Instance (something to call).
 * What a plugin did wrong comes back as a dict {stage, what, expected, got}: the package makes its exception of it. */
#include "plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "inspect.h"
#include "instance.h"

typedef struct dl_py_plugin {
  PyObject_HEAD
  dl_plugin plugin;
  Py_ssize_t instances; /* alive */
  bool unloaded;
} dl_py_plugin;

static const char *const stages[] = {
    [DL_STAGE_LOAD] = "load",       [DL_STAGE_ENTRY] = "entry",     [DL_STAGE_PREFIX] = "prefix",
    [DL_STAGE_TABLE] = "table",     [DL_STAGE_KEYS] = "keys",       [DL_STAGE_CREATE] = "create",
    [DL_STAGE_PROCESS] = "process", [DL_STAGE_DESTROY] = "destroy", [DL_STAGE_UNLOAD] = "unload",
    [DL_STAGE_DONE] = "done",
};

/* Text out of a plugin need not be UTF-8. */
static PyObject *fault_dict(const dl_plugin_fault *f) {
  PyObject *texts[3];
  const char *const sources[3] = {f->what, f->expected, f->got};
  for (int i = 0; i < 3; ++i) texts[i] = PyUnicode_DecodeUTF8(sources[i], (Py_ssize_t)strlen(sources[i]), "backslashreplace");
  return Py_BuildValue("{sssNsNsN}", "stage", stages[f->stage], "what", texts[0], "expected", texts[1], "got", texts[2]);
}

static PyObject *strings(const dl_elf *elf, int64_t tag) {
  PyObject *list = PyList_New(0);
  const char *text;
  for (size_t i = 0; list != NULL && (text = dl_elf_string(elf, tag, i)) != NULL; ++i) {
    PyObject *item = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* Names of symbols: those that are defined and visible, or those that are not defined and not weak. */
static PyObject *symbols(const dl_elf *elf, bool defined) {
  PyObject *list = PyList_New(0);
  dl_elf_symbol s;
  for (uint64_t i = 0; list != NULL && i < elf->symbol_count; ++i) {
    if (!dl_elf_symbol_at(elf, i, &s) || s.defined != defined || (defined ? !s.visible : s.weak)) continue;
    PyObject *item = PyUnicode_DecodeUTF8(s.name, (Py_ssize_t)strlen(s.name), "backslashreplace");
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *plugin_inspect(PyObject *module, PyObject *args) {
  static const char *const names[] = {[DL_ELF_OK] = "ok",           [DL_ELF_NOT_ELF] = "not ELF", [DL_ELF_CLASS] = "class",
                                      [DL_ELF_ENDIAN] = "endian",   [DL_ELF_MACHINE] = "machine", [DL_ELF_TYPE] = "type",
                                      [DL_ELF_TRUNCATED] = "truncated", [DL_ELF_MALFORMED] = "malformed"};
  Py_buffer view;
  dl_elf elf;
  (void)module;
  if (!PyArg_ParseTuple(args, "y*", &view)) return NULL;
  const dl_elf_status status = dl_elf_open(view.buf, (size_t)view.len, &elf);
  PyObject *result;
  if (status != DL_ELF_OK) {
    result = Py_BuildValue("{sssi}", "status", names[status], "found", (int)elf.found);
  } else {
    PyObject *parts[5] = {strings(&elf, DL_ELF_NEEDED), strings(&elf, DL_ELF_RUNPATH), strings(&elf, DL_ELF_RPATH),
                          symbols(&elf, true), symbols(&elf, false)};
    result = Py_BuildValue("{sssisNsNsNsNsNsIsI}", "status", "ok", "found", 0, "needed", parts[0], "runpath", parts[1], "rpath",
                           parts[2], "exported", parts[3], "undefined", parts[4], "note_level", (unsigned)elf.note_level,
                           "note_oldest_host", (unsigned)elf.note_oldest_host);
  }
  PyBuffer_Release(&view);
  return result;
}

/* Whether something that is loaded already supplies a symbol. */
static PyObject *symbol_known(PyObject *module, PyObject *args) {
  const char *name;
  (void)module;
  if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
  return PyBool_FromLong(dlsym(RTLD_DEFAULT, name) != NULL);
}

static PyObject *plugin_rehearse(PyObject *module, PyObject *args) {
  PyObject *path;
  unsigned level;
  int milliseconds;
  dl_plugin_fault fault;
  bool fine;
  (void)module;
  if (!PyArg_ParseTuple(args, "O&Ii", PyUnicode_FSConverter, &path, &level, &milliseconds)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  fine = dl_plugin_rehearse(PyBytes_AsString(path), level, milliseconds, &fault);
  Py_END_ALLOW_THREADS
  Py_DECREF(path);
  if (fine) Py_RETURN_NONE;
  return fault_dict(&fault);
}

static PyObject *plugin_open(PyObject *module, PyObject *args) {
  dl_module_state *state = PyModule_GetState(module);
  PyObject *path;
  unsigned level;
  dl_plugin_fault fault;
  if (!PyArg_ParseTuple(args, "O&I", PyUnicode_FSConverter, &path, &level)) return NULL;
  allocfunc alloc = (allocfunc)PyType_GetSlot(state->plugin_type, Py_tp_alloc);
  dl_py_plugin *self = (dl_py_plugin *)alloc(state->plugin_type, 0);
  const bool opened = self != NULL && dl_plugin_open(PyBytes_AsString(path), level, NULL, &self->plugin, &fault);
  Py_DECREF(path);
  if (self == NULL || opened) return (PyObject *)self;
  Py_DECREF(self);
  return fault_dict(&fault);
}

/* Never closed: the code may have left destructors, thread-local storage or pointers behind. unload() says the rest. */
static void plugin_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  dl_plugin_release(&((dl_py_plugin *)object)->plugin);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject *plugin_facts(PyObject *object, PyObject *unused) {
  const dl_py_plugin *self = (dl_py_plugin *)object;
  const dl_plugin *p = &self->plugin;
  (void)unused;
  return Py_BuildValue("{sNsIsKsy#sOsOsnsO}", "name", PyUnicode_DecodeUTF8(p->name, (Py_ssize_t)strlen(p->name), "replace"),
                       "level", (unsigned)p->level, "table_size", (unsigned long long)p->table_size, "keys",
                       (const char *)p->keys, (Py_ssize_t)(p->key_count * sizeof *p->keys), "matches",
                       p->table.matches != NULL ? Py_True : Py_False, "batch", p->table.process_batch != NULL ? Py_True : Py_False,
                       "instances", self->instances, "unloaded", self->unloaded ? Py_True : Py_False);
}

static PyObject *plugin_unload(PyObject *object, PyObject *unused) {
  dl_py_plugin *self = (dl_py_plugin *)object;
  (void)unused;
  if (self->instances > 0)
    return PyErr_Format(PyExc_ValueError, "plugin: %zd of its instances are alive", self->instances);
  if (!self->unloaded && dlclose(self->plugin.library) != 0) return PyErr_Format(PyExc_OSError, "dlclose: %s", dlerror());
  self->unloaded = true;
  Py_RETURN_NONE;
}

static PyObject *plugin_create(PyObject *object, PyObject *unused) {
  dl_py_plugin *self = (dl_py_plugin *)object;
  dl_module_state *state = PyType_GetModuleState(Py_TYPE(object));
  dl_plugin_fault fault;
  (void)unused;
  if (self->unloaded) {
    PyErr_SetString(PyExc_ValueError, "plugin: it has been unloaded");
    return NULL;
  }
  allocfunc alloc = (allocfunc)PyType_GetSlot(state->instance_type, Py_tp_alloc);
  dl_py_instance *it = (dl_py_instance *)alloc(state->instance_type, 0);
  if (it == NULL) return NULL;
  if (!dl_instance_create(&self->plugin, &it->instance, &fault)) {
    Py_DECREF(it);
    return fault_dict(&fault);
  }
  Py_INCREF(object);
  it->plugin = object;
  ++self->instances;
  return (PyObject *)it;
}

static void instance_dealloc(PyObject *object) {
  dl_py_instance *it = (dl_py_instance *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (it->plugin != NULL) {
    dl_instance_destroy(&it->instance);
    --((dl_py_plugin *)it->plugin)->instances;
    Py_DECREF(it->plugin);
  }
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject *instance_counts(PyObject *object, PyObject *unused) {
  const dl_instance *it = &((dl_py_instance *)object)->instance;
  (void)unused;
  return Py_BuildValue("(LL)", (long long)it->failures, (long long)it->unknown);
}

/* Which first payload bytes the plugin's predicate accepts under a key, asked for each: bytes[256] of 0 and 1. */
static PyObject *instance_accepts(PyObject *object, PyObject *args) {
  dl_instance *it = &((dl_py_instance *)object)->instance;
  unsigned short key;
  char accepted[256];
  if (!PyArg_ParseTuple(args, "H", &key)) return NULL;
  dl_packet packet = {.key = key, .length = 64};
  const dl_handler handler = {.state = it, .key = key};
  for (int byte = 0; byte < 256; ++byte) {
    packet.payload[0] = (uint8_t)byte;
    accepted[byte] = it->plugin->table.matches == NULL || dl_instance_matches(&handler, &packet);
  }
  return PyBytes_FromStringAndSize(accepted, sizeof accepted);
}

/* Results of packets through the instance, all of them as if it had been selected: uint32[n] as bytes. batch 0: one by one. */
static PyObject *instance_run(PyObject *object, PyObject *args) {
  dl_instance *it = &((dl_py_instance *)object)->instance;
  PyObject *packets;
  Py_ssize_t batch;
  Py_buffer view;
  if (!PyArg_ParseTuple(args, "On", &packets, &batch)) return NULL;
  if (batch < 0) return dl_raise(DL_BAD_ARGUMENT, "run: a batch must hold no less than 0 packets");
  if (dl_get_buffer(packets, "packets", sizeof(dl_packet), -1, &view) < 0) return NULL;
  const size_t n = (size_t)view.len / sizeof(dl_packet);
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(n * sizeof(dl_result)));
  if (bytes != NULL) {
    dl_result *out = (dl_result *)(void *)PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS
    dl_instance_run(it, view.buf, n, (size_t)batch, out);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&view);
  return bytes;
}

static PyMethodDef plugin_methods[] = {
    {"facts", plugin_facts, METH_NOARGS, NULL},
    {"create", plugin_create, METH_NOARGS, NULL},
    {"unload", plugin_unload, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef instance_methods[] = {
    {"counts", instance_counts, METH_NOARGS, NULL},
    {"accepts", instance_accepts, METH_VARARGS, NULL},
    {"run", instance_run, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot plugin_slots[] = {
    {Py_tp_dealloc, (void *)plugin_dealloc},
    {Py_tp_methods, plugin_methods},
    {Py_tp_doc, "An opened plugin; made by plugin_open()."},
    {0, NULL},
};

static PyType_Slot instance_slots[] = {
    {Py_tp_dealloc, (void *)instance_dealloc},
    {Py_tp_methods, instance_methods},
    {Py_tp_doc, "An instance of a plugin; made by Plugin.create(), destroyed with its last reference."},
    {0, NULL},
};

PyType_Spec dl_plugin_spec = {
    .name = "dispatchlab._engine.Plugin",
    .basicsize = sizeof(dl_py_plugin),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = plugin_slots,
};

PyType_Spec dl_instance_spec = {
    .name = "dispatchlab._engine.Instance",
    .basicsize = sizeof(dl_py_instance),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = instance_slots,
};

PyMethodDef dl_plugin_methods[] = {
    {"plugin_inspect", plugin_inspect, METH_VARARGS, NULL},
    {"plugin_rehearse", plugin_rehearse, METH_VARARGS, NULL},
    {"plugin_open", plugin_open, METH_VARARGS, NULL},
    {"symbol_known", symbol_known, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
