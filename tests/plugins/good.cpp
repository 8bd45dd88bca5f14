// A good plugin in C++: classes inside, functions of C at the boundary, no exception across it.
#include <dispatchlab/plugin.h>

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace {
class Counter {
 public:
  Counter() : table_(256) {
    for (std::uint32_t i = 0; i < 256; ++i) table_[i] = i * 2654435761u;
  }
  std::uint32_t of(const dispatchlab_view &packet) const {
    std::uint32_t h = packet.key;
    for (std::uint64_t i = 0; i < packet.size; ++i) h = (h << 5 | h >> 27) ^ table_[packet.bytes[i]];
    return h;
  }

 private:
  std::vector<std::uint32_t> table_;
};

std::uint32_t claimed_keys(std::uint16_t *keys, std::uint32_t capacity) {
  if (capacity > 0) keys[0] = 61000;
  return 1;
}

std::int32_t create(void **instance) {
  try {
    *instance = std::make_unique<Counter>().release();
    return DISPATCHLAB_OK;
  } catch (const std::bad_alloc &) {
    return DISPATCHLAB_FAILED;
  }
}

void destroy(void *instance) { delete static_cast<Counter *>(instance); }

std::int32_t process(void *instance, const dispatchlab_view *packet, std::uint32_t *result) {
#ifdef THROWS /* what a good one does not do */
  if (packet->size == 0) throw packet->size;
#endif
  if (packet->size == 0) return DISPATCHLAB_FAILED;
  *result = static_cast<const Counter *>(instance)->of(*packet);
  return DISPATCHLAB_OK;
}

const dispatchlab_plugin table = {DISPATCHLAB_PLUGIN_MAGIC, DISPATCHLAB_PLUGIN_LEVEL, sizeof(dispatchlab_plugin), 1, 0,
                                  "a C++ plugin", claimed_keys, create, destroy, process, nullptr, nullptr};
}  // namespace

DISPATCHLAB_PLUGIN_DEFINE(table)
