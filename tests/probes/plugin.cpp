// A plugin as C++ programmers first write one: classes, inline functions, exceptions, memory. WHO tells two builds apart.
#define SHAPE_VISIBILITY VISIBILITY
#include "shape.h"

#include <new>
#include <stdexcept>
#include <typeinfo>

#define SHOW extern "C" __attribute__((visibility("default")))

SHOW void *allocate() { return ::operator new(64); }
SHOW void *address_of_new() { return reinterpret_cast<void *>(static_cast<void *(*)(std::size_t)>(&::operator new)); }
SHOW int says_who() { return who(); }
SHOW int counts() { return ++counter(); }
SHOW void throws() { throw std::runtime_error("from the plugin"); }
SHOW int contains() {
  try {
    throws();
  } catch (...) {
    return -1;
  }
  return 0;
}
SHOW Shape *make_square() { return new Square; }
SHOW const void *type_of_square() { return &typeid(Square); }
