// The other side of spsc.c: boost::lockfree::spsc_queue, number by number, and with its own calls for arrays.
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>

static boost::lockfree::spsc_queue<uint64_t, boost::lockfree::capacity<1024>> queue;
static const uint64_t at_once = 128;

extern "C" void boost_produce(uint64_t items) {
  for (uint64_t i = 0; i < items; ++i)
    while (!queue.push(i)) {
    }
}

extern "C" uint64_t boost_consume(uint64_t items) {
  uint64_t wrong = 0;
  for (uint64_t i = 0, item = 0; i < items; ++i) {
    while (!queue.pop(item)) {
    }
    wrong += item != i;
  }
  return wrong;
}

extern "C" void boost_arrays_produce(uint64_t items) {
  uint64_t some[at_once];
  for (uint64_t i = 0; i < items;) {
    uint64_t n = 0;
    for (; n < at_once && i < items; ++n) some[n] = i++;
    for (uint64_t sent = 0; sent < n;) sent += queue.push(some + sent, n - sent);
  }
}

extern "C" uint64_t boost_arrays_consume(uint64_t items) {
  uint64_t some[at_once], wrong = 0;
  for (uint64_t i = 0; i < items;) {
    const uint64_t n = queue.pop(some, at_once);
    for (uint64_t k = 0; k < n; ++k) wrong += some[k] != i++;
  }
  return wrong;
}
