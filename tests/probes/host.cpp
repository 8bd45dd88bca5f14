// A host that loads plugins without a C boundary, and prints what happens. Arguments: probe, flag of dlopen, libraries.
#define SHAPE_VISIBILITY VISIBILITY
#include "shape.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <stdexcept>
#include <typeinfo>

extern "C" void through_c(void (*call)());

template <typename F>
static F *symbol(void *library, const char *name) {
  void *at = dlsym(library, name);
  if (at == nullptr) std::puts(dlerror());
  return reinterpret_cast<F *>(at);
}

static int two_heaps(void *a) {
  void *own = reinterpret_cast<void *>(static_cast<void *(*)(std::size_t)>(&::operator new));
  void *theirs = symbol<void *()>(a, "address_of_new")();
  void *memory = symbol<void *()>(a, "allocate")();
  std::printf("operator new %s\n", own == theirs ? "shared" : "two");
  std::fflush(stdout);
  ::operator delete(memory);
  std::puts("freed by the host");
  return 0;
}

static int odr(void *a, void *b) {
  const int first = symbol<int()>(a, "says_who")(), second = symbol<int()>(b, "says_who")();
  symbol<int()>(a, "counts")();
  const int count = symbol<int()>(b, "counts")();
  std::printf("function %s, static %s\n", first == second ? "merged" : "own", count == 21 ? "own" : "merged");
  return 0;
}

static int exceptions(void *a, const char *how) {
  auto *throws = symbol<void()>(a, "throws");
  if (std::strcmp(how, "shim") == 0) return std::printf("contained %d\n", symbol<int()>(a, "contains")()), 0;
  try {
    if (std::strcmp(how, "c") == 0) through_c(throws);
    else
      throws();
  } catch (const std::runtime_error &error) {
    std::printf("caught %s\n", error.what());
  }
  return 0;
}

static int identity(void *a) {
  Shape *shape = symbol<Shape *()>(a, "make_square")();
  const void *theirs = symbol<const void *()>(a, "type_of_square")();
  const bool cast = dynamic_cast<Square *>(shape) != nullptr;
  std::printf("type_info %s, dynamic_cast %s\n", theirs == &typeid(Square) ? "shared" : "two", cast ? "succeeds" : "fails");
  return 0;
}

int main(int argc, char **argv) {
  void *libraries[2] = {nullptr, nullptr};
  if (argc < 4) return 2;
  const int flag = std::strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  for (int i = 3; i < argc && i < 5; ++i)
    if ((libraries[i - 3] = dlopen(argv[i], RTLD_NOW | flag)) == nullptr) return std::puts(dlerror()), 2;
  if (std::strcmp(argv[1], "heaps") == 0) return two_heaps(libraries[0]);
  if (std::strcmp(argv[1], "odr") == 0) return odr(libraries[0], libraries[1]);
  if (std::strcmp(argv[1], "identity") == 0) return identity(libraries[0]);
  return exceptions(libraries[0], argv[1]);
}
