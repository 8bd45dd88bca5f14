/* The packet every arm dispatches on and the result every handler gives. 32 bytes, little-endian, two to a cache line. */
#ifndef DL_PACKET_H
#define DL_PACKET_H

#include <stdint.h>

#define DL_PAYLOAD_BYTES 24

typedef struct dl_packet {
  uint16_t key;    /* the protocol field handlers are selected by */
  uint16_t length; /* length on the wire */
  uint32_t flow;   /* identifies the conversation the packet belongs to */
  uint8_t payload[DL_PAYLOAD_BYTES];
} dl_packet;

_Static_assert(sizeof(dl_packet) == 32, "the packet layout is shared with NumPy");

/* What a handler computes. 32 bits on purpose: see checksum.h. */
typedef uint32_t dl_result;

/* The result of a packet that no handler accepts. */
#define DL_UNMATCHED ((dl_result)0)

#endif
